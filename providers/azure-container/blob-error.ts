import { isJsonObject } from '../../core/openai/json-object';
import type { AnswerReader } from '../call-result';
import type { ProviderEnd } from '../provider-http';

/** Codes after which the same request may succeed when there is room again. */
const QUOTA_CODES: ReadonlySet<string> = new Set(['OperationTimedOut', 'ServerBusy']);
/** Answers that say that the container of the settings is wrong, which is for the operator. */
const ADDRESS_CODES: ReadonlySet<string> = new Set(['ContainerNotFound', 'ContainerBeingDeleted']);

/**
 * An end as other providers would tell it: the error that Azure Storage writes as XML becomes the value of the
 * body. https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
 */
export function withXmlError(end: ProviderEnd): ProviderEnd {
  if (end.kind === 'failure' || end.status < 300) return end;
  const { text = '' } = end;
  const code = /<Code>([^<]{1,100})<\/Code>/.exec(text)?.[1];
  if (code === undefined) return end;
  const message = /<Message>([^<]{1,2000})/.exec(text)?.[1] ?? code;
  const status = ADDRESS_CODES.has(code) ? 403 : end.status;
  return { ...end, status, json: { code, message } };
}

/** Reads the end of a call that answers without a value. @param mask see {@link AnswerReader.mask} */
export function blobReader<Value>(
  value: AnswerReader<Value>['value'],
  mask: (text: string) => string,
): AnswerReader<Value> {
  return {
    value,
    error: (json) => {
      const { code, message } = isJsonObject(json) ? json : {};
      if (typeof code !== 'string' || typeof message !== 'string') return null;
      return { code, message, isQuotaRefusal: QUOTA_CODES.has(code) };
    },
    mask,
  };
}
