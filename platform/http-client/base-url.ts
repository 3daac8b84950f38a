/** A URL or path without the slashes at its end. */
export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === '/') end--;
  return text.slice(0, end);
}

/**
 * The path of an endpoint under a base path without trailing slashes. Many base URLs end in `/v1`, as in
 * OpenAI's SDKs; the `/v1` of the endpoint is then not repeated.
 */
export function joinPath(basePath: string, path: string): string {
  const isRepeated = basePath.endsWith('/v1') && path.startsWith('/v1/');
  return (isRepeated ? basePath.slice(0, -'/v1'.length) : basePath) + path;
}
