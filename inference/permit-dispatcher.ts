import { GatewayError } from '../core/errors';
import { AbortFanOut } from './abort-fan-out';
import type { AcquireRequest, Dispatcher, Permit } from './dispatcher';
import { FairQueue } from './fair-queue';

/** Limits of one process and whom to tell when they cannot be trusted. */
export interface PermitDispatcherOptions {
  /** `concurrency.global`: permits of this process. */
  readonly global: number;
  /** `concurrency.per_model`: permits of one `AcquireRequest.model`. */
  readonly perModel: number;
  /** Called once, at the first permit released twice: a bug that must not be hidden (seed 000). */
  readonly onGuardTripped: (error: GatewayError) => void;
}

/** The dispatcher with a way to ask without waiting, and its gauges. */
export interface PermitDispatcher extends Dispatcher {
  /** A permit at once, or null where `acquire` would wait. */
  tryAcquire(request: AcquireRequest): Permit | null;
  /** For gauges; models without permits and waiters are left out. */
  stats(): PermitStats;
}

/** A snapshot of permits and waiters. */
export interface PermitStats {
  readonly inFlight: number;
  readonly limit: number;
  readonly waiting: number;
  readonly guardTripped: boolean;
  readonly models: readonly {
    readonly model: string;
    readonly inFlight: number;
    readonly waiting: number;
  }[];
}

const NORMAL_PRIORITY = 3;

/**
 * Permits per model, then global, released in reverse order (seed 000): who waits for a global
 * permit holds back only its own model. Both waits are ordered by {@link FairQueue}. No timers, no
 * polling: a release hands its permit to the next in line before it returns.
 */
export function createPermitDispatcher(options: PermitDispatcherOptions): PermitDispatcher {
  for (const name of ['global', 'perModel'] as const) {
    if (Number.isInteger(options[name]) && options[name] >= 1) continue;
    throw new RangeError(`${name} must be a whole number of at least 1, got ${options[name]}`);
  }
  return new ModelThenGlobal(options);
}

interface Waiter {
  readonly request: AcquireRequest;
  readonly slots: ModelSlots;
  readonly grant: (permit: Permit) => void;
  /** Leaves the line it stands in now. */
  leave: () => void;
}

interface ModelSlots {
  readonly model: string;
  /** Permits out, those of waiters for a global one included. */
  held: number;
  /** Permits that also have their global one. */
  inFlight: number;
  readonly waiters: FairQueue<Waiter>;
}

class ModelThenGlobal implements PermitDispatcher {
  readonly #options: PermitDispatcherOptions;
  readonly #models = new Map<string, ModelSlots>();
  readonly #globalWaiters = new FairQueue<Waiter>();
  readonly #aborts = new AbortFanOut();
  #globalHeld = 0;
  #guardTripped = false;

  constructor(options: PermitDispatcherOptions) {
    this.#options = options;
  }

  tryAcquire(request: AcquireRequest): Permit | null {
    const slots = this.#slotsOf(request.model);
    if (slots.held >= this.#options.perModel || this.#globalHeld >= this.#options.global) {
      this.#forgetIfIdle(slots);
      return null;
    }
    slots.held++;
    this.#globalHeld++;
    return this.#permit(slots);
  }

  acquire(request: AcquireRequest, signal?: AbortSignal): Promise<Permit> {
    if (signal?.aborted) return Promise.reject(abortError(signal));
    const permit = this.tryAcquire(request);
    return permit ? Promise.resolve(permit) : this.#wait(request, signal);
  }

  stats(): PermitStats {
    const models = [...this.#models.values()].map(({ model, held, inFlight, waiters }) => ({
      model,
      inFlight,
      waiting: waiters.size + held - inFlight,
    }));
    return {
      inFlight: this.#globalHeld,
      limit: this.#options.global,
      waiting: models.reduce((sum, { waiting }) => sum + waiting, 0),
      guardTripped: this.#guardTripped,
      models,
    };
  }

  #wait(request: AcquireRequest, signal: AbortSignal | undefined): Promise<Permit> {
    return new Promise((resolve, reject) => {
      let unsubscribe: (() => void) | null = null;
      const waiter: Waiter = {
        request,
        slots: this.#slotsOf(request.model),
        grant: (permit) => {
          unsubscribe?.();
          resolve(permit);
        },
        leave: () => undefined,
      };
      if (signal) {
        unsubscribe = this.#aborts.add(signal, () => {
          waiter.leave();
          reject(abortError(signal));
        });
      }
      this.#enterModel(waiter);
    });
  }

  #enterModel(waiter: Waiter): void {
    const { slots } = waiter;
    if (slots.held < this.#options.perModel) {
      slots.held++;
      return this.#enterGlobal(waiter);
    }
    const place = slots.waiters.push(waiter, turnOf(waiter));
    waiter.leave = () => {
      slots.waiters.remove(place);
      this.#forgetIfIdle(slots);
    };
  }

  /** Called with a permit of the model in hand. */
  #enterGlobal(waiter: Waiter): void {
    if (this.#globalHeld < this.#options.global) {
      this.#globalHeld++;
      return waiter.grant(this.#permit(waiter.slots));
    }
    const place = this.#globalWaiters.push(waiter, turnOf(waiter));
    waiter.leave = () => {
      this.#globalWaiters.remove(place);
      this.#releaseModel(waiter.slots);
    };
  }

  #permit(slots: ModelSlots): Permit {
    slots.inFlight++;
    let released = false;
    return {
      release: () => {
        if (released) return this.#tripGuard(slots.model);
        released = true;
        slots.inFlight--;
        this.#releaseGlobal();
        this.#releaseModel(slots);
      },
    };
  }

  #releaseGlobal(): void {
    const next = this.#globalWaiters.shift();
    if (next) next.grant(this.#permit(next.slots));
    else this.#globalHeld--;
  }

  #releaseModel(slots: ModelSlots): void {
    const next = slots.waiters.shift();
    if (next) return this.#enterGlobal(next);
    slots.held--;
    this.#forgetIfIdle(slots);
  }

  #slotsOf(model: string): ModelSlots {
    let slots = this.#models.get(model);
    if (slots === undefined) {
      slots = { model, held: 0, inFlight: 0, waiters: new FairQueue() };
      this.#models.set(model, slots);
    }
    return slots;
  }

  /** Any number of model names may pass by over the months. */
  #forgetIfIdle(slots: ModelSlots): void {
    if (slots.held === 0 && slots.waiters.size === 0) this.#models.delete(slots.model);
  }

  #tripGuard(model: string): void {
    if (this.#guardTripped) return;
    this.#guardTripped = true;
    const message = `a permit of ${model} was released twice: the limits can no longer be trusted`;
    this.#options.onGuardTripped(new GatewayError('permit_released_twice', message));
  }
}

function turnOf({ request }: Waiter): { priority: number; tenant: string } {
  return { priority: request.priority ?? NORMAL_PRIORITY, tenant: request.tenant };
}

function abortError(signal: AbortSignal): DOMException {
  const error = new DOMException('the wait for a permit was aborted', 'AbortError');
  error.cause = signal.reason;
  return error;
}
