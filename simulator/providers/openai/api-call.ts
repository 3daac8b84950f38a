import type { SimulatorSettings } from '../../settings';
import type { ProviderState } from '../job-store';

/** One call of the API, when it takes effect. */
export interface ApiCall {
  /** The id in the path; empty if there is none. */
  readonly id: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
  readonly nowMs: number;
  readonly state: ProviderState;
  /** How the model answers. */
  readonly model: SimulatorSettings;
}
