import {
  defineSearchAttributeKey,
  SearchAttributeType,
  TypedSearchAttributes,
} from '@temporalio/common';
import { keyword as bounded } from '../core/batch/temporal-bounds';

/** The search attributes that a workflow is started with (docs/design/temporal.md#search-attributes). */
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
