/** Pages that are being fetched, or are in memory and not on the disk yet. */
export class PendingPages {
  readonly #objects = new Map<string, Map<number, Promise<Buffer>>>();

  get(key: string, page: number): Promise<Buffer> | undefined {
    return this.#objects.get(key)?.get(page);
  }

  has(key: string, page: number): boolean {
    return this.#objects.get(key)?.has(page) === true;
  }

  /** Serves `bytes` as this page until it is removed. Whether they come is the concern of its readers. */
  add(key: string, page: number, bytes: Promise<Buffer>): void {
    bytes.catch(() => undefined);
    const pages = this.#objects.get(key);
    if (pages === undefined) this.#objects.set(key, new Map([[page, bytes]]));
    else pages.set(page, bytes);
  }

  /** Removes consecutive pages. */
  remove(key: string, first: number, count: number): void {
    const pages = this.#objects.get(key);
    for (let i = 0; i < count; i++) pages?.delete(first + i);
    if (pages?.size === 0) this.#objects.delete(key);
  }
}
