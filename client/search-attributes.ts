import {
  defineSearchAttributeKey,
  SearchAttributeType,
  TypedSearchAttributes,
} from '@temporalio/common';
import { keyword as bounded } from '../core/batch/temporal-bounds';

/** What operators can search a batch by from its first moment (design §5). */
export function initialSearchAttributes(batch: {
  tenant: string;
  endpoint: string;
  expiresAtSec: number;
}): TypedSearchAttributes {
  return new TypedSearchAttributes([
    { key: keyword('BatchTenant'), value: bounded(batch.tenant) },
    { key: keyword('BatchPhase'), value: 'validating' },
    { key: keyword('BatchEndpoint'), value: bounded(batch.endpoint) },
    {
      key: defineSearchAttributeKey('BatchDeadline', SearchAttributeType.DATETIME),
      value: new Date(batch.expiresAtSec * 1000),
    },
  ]);
}

function keyword(name: string) {
  return defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);
}
