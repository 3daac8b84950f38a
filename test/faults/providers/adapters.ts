/** A provider that rounds of faults are played at. */
export interface AdapterUnderTest {
  /** Name of the provider, and of the model that is delegated to it. */
  readonly name: string;
  /** Its entry in `providers`, at the simulator's URL. */
  settings(url: string): object;
}

/** Common settings: looks and leases that are short enough for a round. */
export const FAST = {
  ...{ poll_initial: '300ms', poll_max: '1s', request_timeout: '5s' },
  ...{ create_lease: '10s', create_settle: '2s' },
} as const;

/**
 * One for each API. Dialects of OpenAI's add nothing, and a type that is looked at once a minute makes rounds as long
 * as that.
 */
export const ADAPTERS: readonly AdapterUnderTest[] = [
  { name: 'openai', settings: (url) => ({ type: 'openai', url: `${url}/providers/openai/v1` }) },
  { name: 'mistral', settings: (url) => ({ type: 'mistral', url: `${url}/providers/mistral/v1` }) },
];
