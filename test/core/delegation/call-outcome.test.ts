import {
  createOutcome,
  idempotentOutcome,
  type CallEnd,
} from '../../../core/delegation/call-outcome';

const own = (status: number): CallEnd => ({
  kind: 'answer',
  status,
  isFromProvider: true,
  isQuotaRefusal: false,
});
const foreign = (status: number): CallEnd => ({
  kind: 'answer',
  status,
  isFromProvider: false,
  isQuotaRefusal: false,
});
const quota = (status: number): CallEnd => ({
  kind: 'answer',
  status,
  isFromProvider: true,
  isQuotaRefusal: true,
});
const ALL_STATUSES = Array.from({ length: 500 }, (_, index) => 100 + index);

describe('the outcome of a create', () => {
  it.each([
    ['the id of the job', own(200), 'accepted'],
    ['201 with the id of the job', own(201), 'accepted'],
    ['a 2xx that cannot be read', foreign(200), 'ambiguous'],
    ['no byte sent', { kind: 'failure', mayBeSent: false }, 'not_sent'],
    ['a connection that broke', { kind: 'failure', mayBeSent: true }, 'ambiguous'],
    ['429', own(429), 'capacity'],
    ['429 of a proxy', foreign(429), 'capacity'],
    ['a used-up quota as 400', quota(400), 'capacity'],
    ['a used-up quota as 403', quota(403), 'capacity'],
    ['401', own(401), 'auth'],
    ['403', own(403), 'auth'],
    ['407 of a proxy', foreign(407), 'auth'],
    ['a redirect', foreign(302), 'auth'],
    ['308', own(308), 'auth'],
    ['404 of another server', foreign(404), 'auth'],
    ['405 of another server', foreign(405), 'auth'],
    ['404 of the provider', own(404), 'refused'],
    ['400', own(400), 'refused'],
    ['413 of a proxy', foreign(413), 'refused'],
    ['422', own(422), 'refused'],
    ['408', own(408), 'ambiguous'],
    ['409', own(409), 'ambiguous'],
    ['425', own(425), 'ambiguous'],
    ['500', own(500), 'ambiguous'],
    ['529', own(529), 'ambiguous'],
    ['503 with a used-up quota', quota(503), 'ambiguous'],
  ] as const)('after %s is as documented', (_, end, expected) => {
    expect(createOutcome(end)).toBe(expected);
  });

  it('rules a job out only after a status with which no server has acted', () => {
    const mayExist = (end: CallEnd) => ['accepted', 'ambiguous'].includes(createOutcome(end));
    for (const status of ALL_STATUSES) {
      const isCertain = status >= 300 && status < 500 && ![408, 409, 425].includes(status);
      for (const end of [own(status), foreign(status), quota(status)]) {
        expect([status, mayExist(end)]).toEqual([status, !isCertain]);
      }
    }
  });
});

describe('the outcome of a call that may be repeated', () => {
  it.each([
    ['200', own(200), 'ok'],
    ['a 2xx that cannot be read', foreign(200), 'transient'],
    ['no byte sent', { kind: 'failure', mayBeSent: false }, 'transient'],
    ['a connection that broke', { kind: 'failure', mayBeSent: true }, 'transient'],
    ['408', own(408), 'transient'],
    ['409', own(409), 'transient'],
    ['503', foreign(503), 'transient'],
    ['503 with a used-up quota', quota(503), 'capacity'],
    ['429', own(429), 'capacity'],
    ['401', own(401), 'auth'],
    ['302', foreign(302), 'auth'],
    ['404 of the provider', own(404), 'gone'],
    ['404 of another server', foreign(404), 'auth'],
    ['400', own(400), 'refused'],
  ] as const)('after %s is as documented', (_, end, expected) => {
    expect(idempotentOutcome(end)).toBe(expected);
  });

  it('never takes a failure for a success', () => {
    for (const status of ALL_STATUSES.filter((one) => one < 200 || one > 299)) {
      expect([status, idempotentOutcome(own(status))]).not.toEqual([status, 'ok']);
    }
  });
});
