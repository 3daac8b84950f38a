import type { BatchEvidence, BatchView, Violation } from './evidence';
import { lastSeen } from './evidence';
import { expectedLines, type ExpectedLine, unansweredText } from './expect';

/** How each line ended, by its position in the input, without missing and wrong lines. */
export type LineEndings = ReadonlyMap<number, 'answered' | 'unanswered'>;

export interface FilesVerdict {
  readonly violations: readonly Violation[];
  readonly endings: LineEndings;
}

/**
 * Checks the two files: every line is once in the right one, in input order, with the expected bytes.
 * Counts and usage of the batch agree with the files.
 */
export function checkFiles(evidence: BatchEvidence): FilesVerdict {
  const batch = lastSeen(evidence);
  if (batch === null) return { violations: [], endings: new Map() };
  const found = new Reading(evidence, batch);
  found.read('output', evidence.output);
  found.read('errors', evidence.errors);
  found.compare(batch);
  return found;
}

class Reading implements FilesVerdict {
  readonly violations: Violation[] = [];
  readonly endings = new Map<number, 'answered' | 'unanswered'>();
  readonly #name: string;
  readonly #status: BatchView['status'];
  readonly #lines: readonly ExpectedLine[];
  readonly #byCustomId: ReadonlyMap<string, ExpectedLine>;
  readonly #seen = new Set<string>();

  constructor({ plan, id }: BatchEvidence, { status }: BatchView) {
    this.#name = plan.name;
    this.#status = status;
    this.#lines = expectedLines(plan, id);
    this.#byCustomId = new Map(this.#lines.map((line) => [line.line.customId, line]));
  }

  read(file: 'output' | 'errors', text: string | null): void {
    if (text === null) return;
    if (!text.endsWith('\n')) this.#blame('file-end', `${file} ends with ${text.slice(-20)}`);
    let last = -1;
    for (const line of text.split('\n').slice(0, -1)) {
      const expected = this.#byCustomId.get(customIdOf(line) ?? '');
      if (expected === undefined) {
        this.#blame('foreign-line', `${file}: ${line}`);
        continue;
      }
      const { customId } = expected.line;
      if (this.#seen.has(customId)) this.#blame('doubled-line', `${customId} again in ${file}`);
      this.#seen.add(customId);
      if (expected.index < last) this.#blame('order', `${customId} stands too late in ${file}`);
      last = expected.index;
      this.#compareLine(expected, { file, line });
    }
  }

  #compareLine(expected: ExpectedLine, { file, line }: { file: string; line: string }): void {
    const { answered, index } = expected;
    if (line === answered.text && file === answered.file) {
      this.endings.set(index, 'answered');
    } else if (file === 'errors' && line === this.#unanswered(expected)) {
      this.endings.set(index, 'unanswered');
    } else {
      this.#blame('bytes', `${file} has ${line}, expected in ${answered.file} ${answered.text}`);
    }
  }

  /** The only other line that the status of the batch allows. */
  #unanswered(expected: ExpectedLine): string | null {
    if (this.#status === 'cancelled') return unansweredText(expected, 'batch_cancelled');
    return this.#status === 'expired' ? unansweredText(expected, 'batch_expired') : null;
  }

  compare({ request_counts: counts, usage, ...batch }: BatchView): void {
    const missing = this.#lines.filter(({ line }) => !this.#seen.has(line.customId));
    for (const { line } of missing) this.#blame('lost-line', line.customId);
    const answered = this.#lines.filter(({ index }) => this.endings.get(index) === 'answered');
    const fine = answered.filter(({ tokens }) => tokens !== null);
    const expectedCounts = {
      total: this.#lines.length,
      completed: fine.length,
      failed: answered.length - fine.length,
    };
    this.#same('counts', counts, expectedCounts);
    const sum = (of: 'input' | 'cached' | 'output'): number =>
      fine.reduce((all, { tokens }) => all + (tokens?.[of] ?? 0), 0);
    const found = {
      input: usage.input_tokens,
      cached: usage.input_tokens_details.cached_tokens,
      output: usage.output_tokens,
      total: usage.total_tokens,
    };
    const [input, cached, output] = [sum('input'), sum('cached'), sum('output')];
    this.#same('usage', found, { input, cached, output, total: input + output });
    const ended = ['completed', 'cancelled', 'expired'].includes(batch.status);
    if (!ended) this.#blame('end', `the batch is ${batch.status}`);
  }

  #same(rule: string, found: object, expected: object): void {
    const [is, must] = [JSON.stringify(sorted(found)), JSON.stringify(sorted(expected))];
    if (is !== must) this.#blame(rule, `${is}, by the files ${must}`);
  }

  #blame(rule: string, detail: string): void {
    this.violations.push({ rule, batch: this.#name, detail });
  }
}

function customIdOf(line: string): string | null {
  try {
    return (JSON.parse(line) as { custom_id: string }).custom_id;
  } catch {
    return null;
  }
}

function sorted(object: object): object {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}
