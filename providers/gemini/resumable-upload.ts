import type { ProviderCall } from '../provider-http';

/** The first request of an upload (https://ai.google.dev/api/files#method:-media.upload). */
export function uploadStart(displayName: string, bytes: number): Omit<ProviderCall, 'signal'> {
  return {
    method: 'POST',
    path: '/upload/v1beta/files',
    headers: [
      ...['x-goog-upload-protocol', 'resumable'],
      ...['x-goog-upload-command', 'start'],
      ...['x-goog-upload-header-content-length', String(bytes)],
      ...['x-goog-upload-header-content-type', 'application/jsonl'],
    ],
    json: { file: { displayName } },
  };
}

/**
 * The path for the bytes of an upload, from the address that the first answer names; null if that is none. Only its
 * path and query count, because the key goes to the configured origin alone.
 */
export function uploadPath(address: string): string | null {
  if (!URL.canParse(address)) return null;
  const { pathname, search } = new URL(address);
  // The address repeats what precedes the path of the API, which the base URL has too.
  const start = pathname.indexOf('/upload/');
  return start === -1 ? null : pathname.slice(start) + search;
}
