const MAX_STEM = 100;
const UNKNOWN = 'bin';

/** Names of files of speech, in the order of their lines (docs/design/recordings.md#unpacked-speech). */
export class SpeechNames {
  readonly #taken = new Map<string, number>();

  /** The name of the next file: no path, not hidden, and unlike all before it, also where case does not count. */
  next(customId: string, format: string): string {
    const stem = customId
      .slice(0, MAX_STEM)
      .replace(/[^A-Za-z0-9._-]/g, '_')
      .replace(/^\.+/, (dots) => '_'.repeat(dots.length));
    const name = `${stem || '_'}.${/^[a-z0-9]{1,8}$/.test(format) ? format : UNKNOWN}`;
    const count = (this.#taken.get(name.toLowerCase()) ?? 0) + 1;
    this.#taken.set(name.toLowerCase(), count);
    return count === 1 ? name : name.replace(/(?=\.[a-z0-9]+$)/, `~${count}`);
  }
}
