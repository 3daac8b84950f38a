import {
  defineSearchAttributeKey,
  SearchAttributeType,
  TypedSearchAttributes,
} from '@temporalio/common';

/** What operators can search a batch by from its first moment (design §5). */
export function initialSearchAttributes(batch: {
  tenant: string;
  endpoint: string;
  expiresAtSec: number;
}): TypedSearchAttributes {
  return new TypedSearchAttributes([
    { key: keyword('BatchTenant'), value: batch.tenant },
    { key: keyword('BatchPhase'), value: 'validating' },
    { key: keyword('BatchEndpoint'), value: batch.endpoint },
    {
      key: defineSearchAttributeKey('BatchDeadline', SearchAttributeType.DATETIME),
      value: new Date(batch.expiresAtSec * 1000),
    },
  ]);
}

function keyword(name: string) {
  return defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);
}
