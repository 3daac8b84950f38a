/** How one HTTP call to a provider ended, as far as its class depends on it. */
export type CallEnd =
  | {
      readonly kind: 'answer';
      readonly status: number;
      /**
       * Whether the body is what the provider writes: for 2xx the object that was asked for, otherwise the
       * provider's error object. A page of a proxy, or of another server at a wrong URL, is not.
       */
      readonly isFromProvider: boolean;
      /** Whether the provider says that a quota or limit of the account is used up, with any status. */
      readonly isQuotaRefusal: boolean;
    }
  | {
      readonly kind: 'failure';
      /** Whether the provider may have received a byte of the request. */
      readonly mayBeSent: boolean;
    };

/**
 * What a create call means for its job (docs/design/providers.md#outcomes-of-calls).
 *
 * | outcome     | what happened                                            | may the job exist? |
 * |-------------|----------------------------------------------------------|--------------------|
 * | `accepted`  | 2xx, and the id of the job could be read                 | yes, it does       |
 * | `not_sent`  | no byte of the request left                              | no                 |
 * | `capacity`  | 429, or a quota of the account is used up                | no                 |
 * | `auth`      | the credentials or the address are wrong                 | no                 |
 * | `refused`   | the provider refuses this request for good               | no                 |
 * | `ambiguous` | anything else                                            | perhaps            |
 */
export type CreateOutcome = 'accepted' | 'not_sent' | 'capacity' | 'auth' | 'refused' | 'ambiguous';

/**
 * What a call means that may be repeated without harm, as all calls but a create.
 *
 * | outcome     | what happened                                                          | what to do         |
 * |-------------|------------------------------------------------------------------------|--------------------|
 * | `ok`        | 2xx                                                                    | use the value      |
 * | `transient` | no complete answer, 408, 409, 425, 5xx, or a 2xx that cannot be read   | retry soon         |
 * | `capacity`  | 429, or a quota of the account is used up                              | wait               |
 * | `auth`      | the credentials or the address are wrong                               | alert, retry later |
 * | `gone`      | the provider does not know what the call names                         | depends            |
 * | `refused`   | the provider refuses this request for good                             | do not repeat      |
 */
export type IdempotentOutcome = 'ok' | 'transient' | 'capacity' | 'auth' | 'gone' | 'refused';

/** The provider may have acted on the request before it answered with one of these. */
const AMBIGUOUS_STATUSES: readonly number[] = [408, 409, 425];
/** 407 comes from a proxy that wants credentials of its own. */
const AUTH_STATUSES: readonly number[] = [401, 403, 407];
/** A server that is not the provider answers an unknown path with one of these. */
const ADDRESS_STATUSES: readonly number[] = [404, 405];

/**
 * The class of a create call. Whatever is not certain is `ambiguous`, because a second job costs money, while
 * a look-up costs a minute.
 */
export function createOutcome(end: CallEnd): CreateOutcome {
  if (end.kind === 'failure') return end.mayBeSent ? 'ambiguous' : 'not_sent';
  const { status } = end;
  // A 2xx without a readable id: the job exists, and only a look-up tells its id.
  if (isSuccess(status)) return end.isFromProvider ? 'accepted' : 'ambiguous';
  // Before the quota: a 503 that names a quota may still come from a server that has the job.
  if (status < 300 || status >= 500 || AMBIGUOUS_STATUSES.includes(status)) return 'ambiguous';
  return refusalOf(end);
}

/** The class of a call that may be repeated. */
export function idempotentOutcome(end: CallEnd): IdempotentOutcome {
  if (end.kind === 'failure') return 'transient';
  const { status } = end;
  if (isSuccess(status)) return end.isFromProvider ? 'ok' : 'transient';
  if (end.isQuotaRefusal) return 'capacity';
  if (status < 300 || status >= 500 || AMBIGUOUS_STATUSES.includes(status)) return 'transient';
  const outcome = refusalOf(end);
  return outcome === 'refused' && status === 404 ? 'gone' : outcome;
}

/** The class of a 3xx or 4xx after which the provider has certainly done nothing. */
function refusalOf(end: CallEnd & { kind: 'answer' }): 'capacity' | 'auth' | 'refused' {
  const { status } = end;
  if (status === 429 || end.isQuotaRefusal) return 'capacity';
  // A redirect is not followed, because it would take the credentials to another address.
  if (status < 400 || AUTH_STATUSES.includes(status)) return 'auth';
  return ADDRESS_STATUSES.includes(status) && !end.isFromProvider ? 'auth' : 'refused';
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
