import type { S3Client } from '@aws-sdk/client-s3';

/** What one request may take, in the words of the SDK's HTTP handler. */
export interface RequestLimits {
  /** Longest time until the answer begins, milliseconds. */
  readonly requestTimeout: number;
  /** Ends the request. */
  readonly abortSignal?: AbortSignal;
}

/** A command of the SDK. */
export interface Command {
  readonly input: object;
}

/** On the input of a command, and on the request that is made of it. */
const LIMITS = Symbol('limits');

interface Limited {
  [LIMITS]?: RequestLimits;
}

/**
 * The command with limits of its own. As options of `send`, they would make the SDK compose its middleware for this
 * request alone, which takes as long as everything else that it does (docs/benchmarks-steps.md#s3).
 */
export function limited<C extends Command>(command: C, limits: RequestLimits): C {
  (command.input as Limited)[LIMITS] = limits;
  return command;
}

/** Makes a client honor the limits of `limited` commands. To be called before its first request. */
export function honorLimits(client: S3Client): void {
  client.middlewareStack.add(
    (next) => (args) => {
      const { [LIMITS]: limits } = args.input as Limited;
      if (limits !== undefined) (args.request as Limited)[LIMITS] = limits;
      return next(args);
    },
    // The last step: until then, requests are copied without what the SDK does not know.
    { step: 'deserialize', name: 'honorLimits' },
  );
  const { requestHandler } = client.config;
  const handle = requestHandler.handle.bind(requestHandler);
  requestHandler.handle = (request) => handle(request, (request as Limited)[LIMITS]);
}
