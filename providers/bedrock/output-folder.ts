import { z } from 'zod';
import type { JobUsage } from '../../core/delegation/job-counts';
import type { CallOptions, IdempotentResult } from '../provider';
import { wholeFile } from '../read-file';
import type { RemoteFolder } from '../remote-folder';

/** What an ended job has left in its folder. */
export interface JobOutput {
  /** Files with results, as names in the folder. */
  readonly files: readonly string[];
  /** From the summary of the job; null without one. */
  readonly usage: JobUsage | null;
}

const RESULTS = /\.jsonl\.out$/;
const SUMMARY = /(^|\/)manifest\.json\.out$/;
const MAX_SUMMARY_BYTES = 1024 * 1024;

const tokens = z.int().min(0);
const summary = z.object({ inputTokenCount: tokens, outputTokenCount: tokens });

/**
 * Looks into the folder of an ended job: a list, and the summary if there is one.
 * https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-results.html
 */
export async function readOutput(
  folder: RemoteFolder,
  prefix: string,
  call: CallOptions,
): Promise<IdempotentResult<JobOutput>> {
  const listed = await folder.list(prefix, call);
  if (listed.outcome !== 'ok') return listed;
  const files = listed.value.filter((name) => RESULTS.test(name));
  const manifest = listed.value.find((name) => SUMMARY.test(name));
  if (manifest === undefined) return { outcome: 'ok', value: { files, usage: null } };
  const whole = wholeFile(MAX_SUMMARY_BYTES);
  const read = await folder.read(manifest, whole.take, call);
  if (read.outcome !== 'ok' && read.outcome !== 'gone') return read;
  return { outcome: 'ok', value: { files, usage: usageOf(whole.json()) } };
}

/** Tokens that were read from a cache are not told apart. */
function usageOf(json: unknown): JobUsage | null {
  const parsed = summary.safeParse(json);
  if (!parsed.success) return null;
  const { inputTokenCount: inputTokens, outputTokenCount: outputTokens } = parsed.data;
  return { inputTokens, cachedTokens: 0, outputTokens };
}
