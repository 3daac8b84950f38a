import type { AcquireRequest, Permit } from '../../inference/dispatcher';
import type { PermitDispatcher } from '../../inference/permit-dispatcher';
import { acquire } from '../support/promises-of-sending';

/** A granted permit. */
export interface HeldPermit {
  readonly model: string;
  readonly permit: Permit;
}

/** The requests of a property test that hold a permit of one dispatcher or wait for one. */
export class PermitHistory {
  readonly held: HeldPermit[] = [];
  readonly #dispatcher: PermitDispatcher;
  readonly #onGranted: (held: HeldPermit) => void;
  readonly #waiting = new Set<AbortController>();
  readonly #ends: Promise<void>[] = [];

  constructor(dispatcher: PermitDispatcher, onGranted: (held: HeldPermit) => void = () => {}) {
    this.#dispatcher = dispatcher;
    this.#onGranted = onGranted;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get isOver(): boolean {
    return this.held.length === 0 && this.#waiting.size === 0;
  }

  /** How many permits of these models are held. */
  heldOf(...models: string[]): number {
    return this.held.filter(({ model }) => models.includes(model)).length;
  }

  acquire(request: AcquireRequest): void {
    const controller = new AbortController();
    this.#waiting.add(controller);
    const granted = (permit: Permit): void => {
      this.#waiting.delete(controller);
      const held = { model: request.model, permit };
      this.held.push(held);
      this.#onGranted(held);
    };
    const aborted = (): void => void this.#waiting.delete(controller);
    this.#ends.push(acquire(this.#dispatcher, request, controller.signal).then(granted, aborted));
  }

  abort(pick: number): void {
    [...this.#waiting][pick % this.#waiting.size]?.abort();
  }

  /** Removes one of the held permits, for the caller to release. */
  take(pick: number): Permit | undefined {
    return this.held.splice(pick % this.held.length, 1)[0]?.permit;
  }

  /** Rejects if a check of `onGranted` failed. */
  async end(): Promise<void> {
    await Promise.all(this.#ends);
  }
}
