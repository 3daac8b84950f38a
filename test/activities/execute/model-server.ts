import type { Answer, Received } from '../../inference/local-server';

/** The custom id of the line that a request comes from: `l0`, `l1`, … */
export function nameOf({ body }: Received): string {
  return (JSON.parse(body.toString()) as { n: string }).n;
}

/** A successful answer that names its line. */
export const ok: Answer = (request, response) => {
  const body = {
    echo: nameOf(request),
    usage: { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 },
  };
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
};

/** An error answer of this status. */
export function status(code: number, headers: Record<string, string> = {}): Answer {
  return (_request, response) => response.writeHead(code, headers).end('{"error":{}}');
}

/** A model server that answers only when the test says so. */
export interface Gate {
  readonly answer: Answer;
  /** Answers everything that waits, and from now on everything at once. */
  open(): void;
  /** Answers one line that waits. */
  release(name: string, answer?: Answer): void;
  /** Lines that wait for their answer, in order of arrival. */
  held(): string[];
  /** Lines whose connection was closed before they had an answer. */
  dropped(): string[];
}

/** @param reply what it answers when it is open */
export function gate(reply = ok): Gate {
  const held = new Map<string, (answer: Answer) => void>();
  const dropped: string[] = [];
  let isOpen = false;
  return {
    answer: (request, response, socket) => {
      if (isOpen) return reply(request, response, socket);
      const name = nameOf(request);
      held.set(name, (answer) => answer(request, response, socket));
      response.once('close', () => {
        if (held.delete(name)) dropped.push(name);
      });
    },
    open: () => {
      isOpen = true;
      for (const release of take(held, [...held.keys()])) release(reply);
    },
    release: (name, answer = ok) => {
      const [release] = take(held, [name]);
      if (release === undefined) throw new Error(`${name} does not wait`);
      release(answer);
    },
    held: () => [...held.keys()],
    dropped: () => dropped,
  };
}

function take<T>(from: Map<string, T>, names: readonly string[]): T[] {
  return names.flatMap((name) => {
    const value = from.get(name);
    from.delete(name);
    return value === undefined ? [] : [value];
  });
}
