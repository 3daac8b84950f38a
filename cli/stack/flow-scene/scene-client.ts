import { Agent, request } from 'node:http';

/** How a call ended. */
export interface CallEnd {
  readonly isAnswered: boolean;
  /** From the time when it should have been sent to the first event of its answer, ms; null without one. */
  readonly firstMs: number | null;
}

/** A call to an endpoint for chat completions. */
export interface Call {
  /** Base URL without a path. */
  readonly url: string;
  /** Makes the prompt, and so the length of the answer. */
  readonly name: string;
  readonly isStream: boolean;
  /** The token of a worker; null for a user. */
  readonly token: string | null;
  /** When it should have been sent, on the clock of `performance.now()`. */
  readonly dueMs: number;
  readonly signal: AbortSignal;
}

const PROMPT_CHARACTERS = 800;

/** Sends requests over connections that are kept open. */
export class SceneClient {
  readonly #agent = new Agent({ keepAlive: true });

  close(): void {
    this.#agent.destroy();
  }

  /** Never rejects: a call that fails is not answered. */
  send({ url, name, isStream, token, dueMs, signal }: Call): Promise<CallEnd> {
    const content = `${name} `.padEnd(PROMPT_CHARACTERS, 'word ');
    const messages = [{ role: 'user', content }];
    const body = JSON.stringify({ model: 'scene', messages, stream: isStream });
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    };
    return new Promise((resolve) => {
      let firstMs: number | null = null;
      const lost = (): void => resolve({ isAnswered: false, firstMs: null });
      const sent = request(
        `${url}/v1/chat/completions`,
        { method: 'POST', agent: this.#agent, headers, signal },
        (response) => {
          response.on('data', () => (firstMs ??= performance.now() - dueMs));
          response.on('error', lost);
          response.on('close', lost);
          response.on('end', () => resolve({ isAnswered: response.statusCode === 200, firstMs }));
        },
      );
      sent.on('error', lost);
      sent.end(body);
    });
  }
}
