import type { ApiKeyFile } from '../platform/api-key-file';
import type { ConnectionPoolOptions } from '../platform/http-client/pool';

/** The types of providers that have an adapter. */
export type ProviderType = 'openai' | 'azure_openai' | 'nightshift';

/** What an adapter needs of one entry of `providers`. */
export interface ProviderSettings {
  readonly type: ProviderType;
  /** Base URL, such as `https://api.openai.com/v1`. */
  readonly url: string;
  /** The file with the key; null for a provider that takes none. */
  readonly apiKey: ApiKeyFile | null;
  readonly tls: ConnectionPoolOptions['tls'];
  /** Time limit of a call without a large body, and of a transfer in which no byte moves, ms. */
  readonly requestTimeoutMs: number;
  /** Time limit of an upload or a download, ms. */
  readonly transferTimeoutMs: number;
  /** Longest line of a result file, bytes. A longer one counts as malformed. */
  readonly maxResultLineBytes: number;
}
