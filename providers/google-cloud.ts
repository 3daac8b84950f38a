import { NightshiftError } from '../core/errors';
import { openGcsFolder } from './gcs-folder/gcs-folder';
import type { ProviderHttp } from './provider-http';
import type { GcsStorage, ProviderConnection } from './provider-settings';
import type { RemoteFolder } from './remote-folder';
import { AccessTokens } from './google-oauth/access-tokens';
import { openAuthorizedHttp } from './google-oauth/authorized-http';

/** Scope of access tokens: https://developers.google.com/identity/protocols/oauth2/scopes. */
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** A service of Google Cloud, and the folder that it reads from and writes to, with one service account. */
export interface GoogleCloud {
  readonly http: ProviderHttp;
  readonly folder: RemoteFolder;
  /** A text without keys and tokens. */
  readonly mask: (text: string) => string;
  close(): Promise<void>;
}

/** Opens both. It makes no call. @throws config_invalid if the key cannot be read */
export function openGoogleCloud(
  settings: ProviderConnection & { readonly storage: GcsStorage },
): GoogleCloud {
  const { apiKey, storage, url } = settings;
  if (apiKey === null) {
    const message = `the provider at ${url} needs the key of a service account: set api_key_name or api_key_file`;
    throw new NightshiftError('config_invalid', message);
  }
  const tokens = new AccessTokens(apiKey, SCOPE, settings);
  const mask = (text: string): string => tokens.mask(text);
  const http = openAuthorizedHttp(settings, tokens);
  const storageHttp = openAuthorizedHttp({ ...settings, url: storage.url }, tokens);
  const folder = openGcsFolder(storage, { http: storageHttp, mask });
  return {
    http,
    folder,
    mask,
    close: async () => {
      await Promise.all([http.close(), storageHttp.close(), tokens.close()]);
    },
  };
}
