/** A response breaks the rules of HTTP/1.1, so its connection cannot be used any more. */
export class MalformedResponse extends Error {
  override readonly name = 'MalformedResponse';
}
