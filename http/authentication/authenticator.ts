/** The owner of an API key. */
export interface Caller {
  readonly tenant: string;
}

/** Looks up API keys. Each server brings its own implementation. */
export interface Authenticator {
  /**
   * The owner of the key; null if the key is unknown, revoked, or expired. Throws an error with status
   * 503 if the lookup fails.
   */
  authenticate(key: string): Promise<Caller | null>;
}
