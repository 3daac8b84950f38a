import fc from 'fast-check';
import type { Permit } from '../../../inference/dispatcher';
import { BorrowedPermits } from '../../../inference/loans/borrowed-permits';
import type { ClaimsMessage, LoanMessage } from '../../../inference/loans/loan-messages';
import { LoanDesk, type LoanAccount } from '../../../inference/loans/loan-desk';
import {
  createPermitDispatcher,
  type PermitDispatcher,
} from '../../../inference/permit-dispatcher';
import { until } from '../../support/until';
import { permitRequest as request, unguarded } from '../permit-requests';
import { acquire } from '../../support/promises-of-sending';

/** A process whose messages travel only when the test lets them. */
class Member {
  readonly dispatcher: PermitDispatcher;
  readonly #borrowed: BorrowedPermits;
  readonly #account: LoanAccount;
  readonly #down: LoanMessage[] = [];
  readonly #up: ClaimsMessage[] = [];
  readonly held: Permit[] = [];
  #isOver = false;

  constructor(desk: LoanDesk, limits: { global: number; perModel: number }) {
    this.#borrowed = new BorrowedPermits((message) => void this.#up.push(message));
    this.#account = desk.open((message) => void this.#down.push(message));
    const options = { ...limits, source: this.#borrowed, onGuardTripped: unguarded };
    this.dispatcher = createPermitDispatcher(options);
  }

  get inFlight(): number {
    return this.held.length;
  }

  /** Takes one permit as soon as there is one. */
  want(model = 'm', tenant = 't', batch = 'b'): void {
    void acquire(this.dispatcher, request({ model, tenant, batch })).then((permit) => {
      if (this.#isOver) return;
      this.held.push(permit);
    });
  }

  end(): void {
    this.held.shift()?.release();
  }

  /** Delivers what was sent; structured as it would be over a channel. */
  deliver(): void {
    for (const message of this.#up.splice(0)) this.#account.onClaims(structuredClone(message));
    for (const message of this.#down.splice(0)) this.#borrowed.onLoan(structuredClone(message));
  }

  kill(): void {
    this.#isOver = true;
    this.held.length = 0;
    this.#up.length = 0;
    this.#down.length = 0;
    this.#borrowed.close();
    this.#account.close();
  }
}

let desk: LoanDesk;
let members: Member[];

function open(count: number, limits = { global: 100, perModel: 10 }): Member[] {
  desk = new LoanDesk(() => 1);
  members = Array.from({ length: count }, () => new Member(desk, limits));
  return members;
}

afterEach(() => {
  for (const member of members) member.kill();
  desk.close();
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Lets messages travel until `isTrue`. */
async function settle(isTrue: () => boolean, what: string): Promise<void> {
  await until(
    () => {
      for (const member of members) member.deliver();
      return isTrue();
    },
    10_000,
    what,
    1,
  );
}

const total = () => members.reduce((sum, { inFlight }) => sum + inFlight, 0);

it('lends all permits of a model to the only process that needs them', async () => {
  const [first] = open(2) as [Member, Member];
  for (let i = 0; i < 12; i++) first.want();
  await settle(() => first.inFlight === 10, 'ten permits');
  expect(first.dispatcher.stats().waiting).toBe(2);
});

it('gives half of them to a second process, as the requests of the first one end', async () => {
  const [first, second] = open(2) as [Member, Member];
  for (let i = 0; i < 30; i++) first.want();
  await settle(() => first.inFlight === 10, 'ten permits');
  for (let i = 0; i < 30; i++) second.want();
  await settle(() => {
    expect(total()).toBeLessThanOrEqual(10);
    if (second.inFlight < 5) first.end();
    return second.inFlight === 5 && first.inFlight === 5;
  }, 'five each');
});

it('takes turns if there is only one permit', async () => {
  const [first, second] = open(2, { global: 1, perModel: 1 }) as [Member, Member];
  const ended: [number, number] = [0, 0];
  for (let i = 0; i < 500; i++) [first, second].forEach((member) => member.want());
  await settle(() => {
    expect(total()).toBeLessThanOrEqual(1);
    [first, second].forEach((member, at) => {
      if (member.inFlight === 0) return;
      member.end();
      ended[at as 0]++;
    });
    return Math.min(...ended) >= 10;
  }, 'ten requests of each');
});

it('lends the permits of a dead process to the others', async () => {
  const [first, second] = open(2) as [Member, Member];
  for (let i = 0; i < 10; i++) first.want();
  await settle(() => first.inFlight === 10, 'ten permits');
  for (let i = 0; i < 10; i++) second.want();
  first.kill();
  await settle(() => second.inFlight === 10, 'all permits');
});

it('serves a request that holds a permit of its model and waits for one of the process', async () => {
  const [first, second] = open(2, { global: 2, perModel: 2 }) as [Member, Member];
  for (let i = 0; i < 4; i++) first.want('a');
  await settle(() => first.inFlight === 2, 'all permits of the process');
  for (let i = 0; i < 4; i++) second.want('b');
  await settle(() => {
    expect(total()).toBeLessThanOrEqual(2);
    if (second.inFlight === 0) first.end();
    return second.inFlight > 0;
  }, 'one for the other process');
});

it('forgets a model that nobody uses any more', async () => {
  const [first, second] = open(2) as [Member, Member];
  first.want('only-once');
  await settle(() => first.inFlight === 1, 'a permit');
  first.end();
  for (let i = 0; i < 10; i++) second.want('only-once');
  await settle(() => second.inFlight === 10, 'all permits');
});

it('never lets more requests be in flight than the limits, whatever arrives late', async () => {
  const action = fc.record({
    what: fc.constantFrom('want', 'want', 'end', 'deliver', 'turn', 'kill'),
    at: fc.nat(2),
    model: fc.constantFrom('m', 'n'),
    tenant: fc.constantFrom('t', 'u'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 120 }), async (actions) => {
      open(3, { global: 7, perModel: 5 });
      try {
        for (const { what, at, model, tenant } of actions) {
          const member = members[at]!;
          if (what === 'want') member.want(model, tenant);
          else if (what === 'end') member.end();
          else if (what === 'deliver') member.deliver();
          else if (what === 'turn') await turn();
          else {
            member.kill();
            members[at] = new Member(desk, { global: 7, perModel: 5 });
          }
          await Promise.resolve();
          const stats = members.map(({ dispatcher }) => dispatcher.stats());
          const inFlight = (name: string) =>
            stats.reduce(
              (sum, { models }) => sum + (models.find((one) => one.model === name)?.inFlight ?? 0),
              0,
            );
          expect(stats.reduce((sum, one) => sum + one.inFlight, 0)).toBeLessThanOrEqual(7);
          for (const name of ['m', 'n']) expect(inFlight(name)).toBeLessThanOrEqual(5);
        }
      } finally {
        for (const member of members) member.kill();
        desk.close();
      }
    }),
    { numRuns: 150 },
  );
});
