import type { Client } from '@temporalio/client';
import { createAttributeCheck } from '../../client/attribute-check';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract';

/** A namespace whose attributes a test changes, and how often it was asked for them. */
function open() {
  const state = {
    asked: 0,
    nowMs: 0,
    isAway: false,
    attributes: { ...SEARCH_ATTRIBUTES } as object,
  };
  const listSearchAttributes = () => {
    state.asked++;
    if (state.isAway) return Promise.reject(new Error('away'));
    return Promise.resolve({ customAttributes: state.attributes });
  };
  const client = {
    options: { namespace: 'n' },
    connection: { operatorService: { listSearchAttributes } },
    withDeadline: (_: number, call: () => Promise<unknown>) => call(),
  } as unknown as Client;
  const check = createAttributeCheck(client, 'BatchProviders', { nowMs: () => state.nowMs });
  return { state, check };
}

it('asks once for an attribute that is registered', async () => {
  const { state, check } = open();
  expect([await check(), await check()]).toEqual([true, true]);
  expect(state.asked).toBe(1);
});

it('asks again after a minute for one that is missing', async () => {
  const { state, check } = open();
  state.attributes = { BatchTenant: 'Keyword' };
  expect(await check()).toBe(false);
  state.attributes = SEARCH_ATTRIBUTES;
  state.nowMs = 59_999;
  expect(await check()).toBe(false);
  state.nowMs = 60_000;
  expect(await check()).toBe(true);
});

it('counts as missing while the server does not answer', async () => {
  const { state, check } = open();
  state.isAway = true;
  expect(await check()).toBe(false);
  state.isAway = false;
  state.nowMs = 60_000;
  expect(await check()).toBe(true);
});
