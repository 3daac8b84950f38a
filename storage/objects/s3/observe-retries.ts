import type { S3Client } from '@aws-sdk/client-s3';
import type { StoreOperation } from '../observed-store';

/** Called for each request that is sent once more; must not throw. */
export type OnRetry = (operation: StoreOperation) => void;

/** Reports what the client sends again by itself, for requests that succeed in the end and for others. */
export function observeRetries(client: S3Client, onRetry: OnRetry): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (request) => {
        const report = (answer: unknown): void => {
          for (let n = attemptsOf(answer); n > 1; n--) onRetry(operationOf(commandName ?? ''));
        };
        try {
          const answer = await next(request);
          report(answer.output);
          return answer;
        } catch (error) {
          report(error);
          throw error;
        }
      },
    { step: 'initialize', name: 'observeRetries' },
  );
}

/** Attempts that the client made, as it notes them in answers and errors. */
function attemptsOf(answer: unknown): number {
  const { $metadata } = (answer ?? {}) as { $metadata?: { attempts?: number } };
  return $metadata?.attempts ?? 1;
}

function operationOf(command: string): StoreOperation {
  if (/^(Get|Head|List)/.test(command)) return 'retrieve';
  return /^(Delete|Abort)/.test(command) ? 'delete' : 'store';
}
