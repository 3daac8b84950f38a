import { NightshiftError } from '../core/errors';
import { readTlsFiles } from '../inference/secrets';
import { apiKeyFile } from '../platform/api-key-file';
import type { Config } from '../platform/config-schema';
import type {
  AzureStorageConfig,
  GcsStorageConfig,
  S3StorageConfig,
} from '../platform/config-provider-storage';
import type { ProviderConfig } from '../platform/config-providers';
import { accountOf } from '../providers/account';
import type {
  AzureContainerStorage,
  GcsStorage,
  ProviderKind,
  S3Storage,
} from '../providers/provider-settings';
import { openProvider } from '../providers/registry';
import type { OpenProvider } from '../activities/delegate/deps';

/** The providers of a process. */
export interface OpenProviders {
  /** Null if the settings have no such provider. */
  get(name: string): OpenProvider | null;
  readonly all: readonly OpenProvider[];
  /** Closes all connections. */
  close(): Promise<void>;
}

/** The settings that providers are opened with. */
export type ProvidersConfig = Pick<Config, 'providers' | 'secrets_dir' | 'limits'>;

/** Beside an answer, a line of a result file holds ids and little else. */
const RESULT_LINE_OVERHEAD = 64 * 1024;

/** Opens every provider of the settings. @throws config_invalid if a key or certificate cannot be read */
export function openProviders(config: ProvidersConfig): OpenProviders {
  const opened = new Map<string, OpenProvider>();
  for (const [name, provider] of Object.entries(config.providers)) {
    const api = openAdapter(name, provider, config);
    const settleMs = provider.create_settle ?? api.capabilities.settleMs;
    const isExclusive = 'exclusive' in provider && provider.exclusive === true;
    const account = accountOf(provider);
    opened.set(name, { name, config: provider, account, settleMs, isExclusive, api });
  }
  return {
    get: (name) => opened.get(name) ?? null,
    all: [...opened.values()],
    close: async () => {
      await Promise.all([...opened.values()].map(({ api }) => api.close()));
    },
  };
}

function openAdapter(
  name: string,
  provider: ProviderConfig,
  { secrets_dir: secretsDir, limits }: ProvidersConfig,
): OpenProvider['api'] {
  return openProvider({
    ...kindOf(name, provider, secretsDir),
    url: provider.url,
    // Read again when the file changes; the certificates are read once.
    apiKey: apiKeyFile(provider, secretsDir, `provider ${name}`),
    tls: readTlsFiles(provider),
    requestTimeoutMs: provider.request_timeout,
    transferTimeoutMs: provider.transfer_timeout,
    maxResultLineBytes: limits.max_answer_bytes + RESULT_LINE_OVERHEAD,
  });
}

/** The settings that only some types have. */
function kindOf(name: string, provider: ProviderConfig, secretsDir: string): ProviderKind {
  switch (provider.type) {
    case 'anthropic':
      return { type: provider.type, apiVersion: provider.api_version };
    case 'aws_transcribe':
      return {
        type: provider.type,
        region: provider.region,
        dataAccessRoleArn: provider.data_access_role_arn ?? null,
        storage: s3StorageOf(provider.storage),
      };
    case 'azure_speech':
      return {
        type: provider.type,
        apiVersion: provider.api_version,
        locales: provider.locales,
        storage: azureStorageOf(name, provider.storage, secretsDir),
      };
    case 'bedrock':
      return {
        type: provider.type,
        region: provider.region,
        roleArn: provider.role_arn,
        storage: s3StorageOf(provider.storage),
      };
    case 'vertex': {
      const { type, project, location, storage } = provider;
      return { type, project, location, storage: gcsStorageOf(storage) };
    }
    case 'google_speech': {
      const { type, project, location, locales, storage } = provider;
      return { type, project, location, locales, storage: gcsStorageOf(storage) };
    }
    default:
      return { type: provider.type };
  }
}

function s3StorageOf({ bucket, prefix, url }: S3StorageConfig): S3Storage {
  return { bucket, prefix: folderOf(prefix), url: url ?? null };
}

function gcsStorageOf({ bucket, prefix, url }: GcsStorageConfig): GcsStorage {
  return { bucket, prefix: folderOf(prefix), url };
}

/** @throws config_invalid without a token */
function azureStorageOf(
  name: string,
  { url, prefix, ...key }: AzureStorageConfig,
  secretsDir: string,
): AzureContainerStorage {
  const sasToken = apiKeyFile(key, secretsDir, `storage of provider ${name}`);
  if (sasToken !== null) return { url, prefix: folderOf(prefix), sasToken };
  throw new NightshiftError('config_invalid', `providers.${name}.storage: set api_key_file`);
}

/** A prefix with a slash at its end; an empty one stays empty. */
function folderOf(prefix: string): string {
  return prefix === '' ? '' : `${prefix.replace(/\/$/, '')}/`;
}
