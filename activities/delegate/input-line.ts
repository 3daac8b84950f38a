import { wireId } from '../../core/delegation/job-ids';
import { readLineFields } from '../../core/openai/member-ranges';
import type { EncodedLine } from '../../providers/provider';
import type { ObjectReader } from '../../storage/object-store';
import type { ChunkLine } from '../execute/chunk-ledger';
import type { JobAttempt } from './job-attempt';
import { translationOf } from './translation';

/** A line of the batch's input, and as its provider takes it. */
export interface InputLine {
  readonly customId: string;
  readonly encoded: EncodedLine;
}

/** Reads a line and translates it for the provider of the job. */
export async function readInputLine(
  { provider, input, deps }: JobAttempt,
  { position, offset, length }: ChunkLine,
  reader: ObjectReader,
): Promise<InputLine> {
  const bytes = reader.readNow?.(offset, length) ?? (await reader.read(offset, length));
  const { bodyStart, bodyEnd, customId } = readLineFields(bytes);
  const delegate = deps.config.delegates[input.model];
  const encoded = provider.api.encode({
    wireId: wireId(input.job.jobId, position),
    endpoint: input.endpoint,
    model: delegate?.model ?? null,
    body: bytes.subarray(bodyStart, bodyEnd),
    translation: translationOf(delegate),
  });
  return { customId, encoded };
}
