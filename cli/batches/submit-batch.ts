import { randomUUID } from 'node:crypto';
import type { Batch } from 'openai/resources/batches';
import { endpointOf, openInput } from './input-file';
import type { Session } from './session';
import { uploadInput } from './upload';

/** Flags that describe the new batch. */
export interface SubmitFlags {
  /** Default: the `url` of the first request. */
  readonly endpoint?: string;
  readonly window: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * Uploads the file and creates its batch. An interrupt during the upload creates nothing. The creation
 * itself cannot be interrupted: otherwise a batch could run whose id the user never saw.
 */
export async function submitBatch(
  inputPath: string,
  flags: SubmitFlags,
  { service, interrupts, reporter }: Pick<Session, 'service' | 'interrupts' | 'reporter'>,
): Promise<Batch> {
  const input = openInput(inputPath);
  const endpoint = flags.endpoint ?? (await endpointOf(inputPath));
  const inputFileId = await uploadInput({ service, input, interrupts, reporter }).catch(
    (error: unknown) => {
      if (interrupts.pending !== null) reporter.say('no batch was created');
      throw error;
    },
  );
  return service.create({
    inputFileId,
    endpoint,
    window: flags.window,
    metadata: flags.metadata ?? null,
    idempotencyKey: randomUUID(),
  });
}
