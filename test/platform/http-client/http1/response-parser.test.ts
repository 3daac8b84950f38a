import fc from 'fast-check';
import { MalformedResponse } from '../../../../platform/http-client/http1/malformed-response';
import type { ResponseHead } from '../../../../platform/http-client/http1/response-head';
import { ResponseParser } from '../../../../platform/http-client/http1/response-parser';

/** What a parser made of some bytes. */
interface Parsed {
  readonly interim: number[];
  status: number | null;
  fields: string[];
  body: string;
  isWhole: boolean;
  /** Bytes behind the response. */
  rest: string;
}

/** Parses one response that arrives in these pieces, with or without the end of the connection behind them. */
function parse(pieces: readonly string[], closes = false): Parsed {
  const parsed: Parsed = {
    interim: [],
    status: null,
    fields: [],
    body: '',
    isWhole: false,
    rest: '',
  };
  const parser = new ResponseParser({
    onInterim: (status) => parsed.interim.push(status),
    onHead: (head: ResponseHead) => {
      parsed.status = head.status;
      parsed.fields = head.pairs();
    },
    onBody: (piece) => (parsed.body += piece.toString('latin1')),
  });
  parser.begin();
  for (const piece of pieces) {
    const bytes = Buffer.from(piece, 'latin1');
    const used = parser.isIdle ? 0 : parser.push(bytes);
    parsed.rest += bytes.toString('latin1', used);
  }
  parsed.isWhole = parser.isIdle || (closes && parser.close());
  return parsed;
}

const head = (...fields: string[]) => ['HTTP/1.1 200 OK', ...fields, '', ''].join('\r\n');

describe('a response', () => {
  it('has a body of the given length, and nothing behind it', () => {
    expect(parse([`${head('Content-Length:  5 ')}hello`])).toEqual({
      ...{ interim: [], status: 200, fields: ['Content-Length', '5'] },
      ...{ body: 'hello', isWhole: true, rest: '' },
    });
    expect(parse([`${head('content-length: 2')}hello`])).toMatchObject({ body: 'he', rest: 'llo' });
    expect(parse([`${head('content-length: 9')}hello`])).toMatchObject({ isWhole: false });
    expect(parse([head('content-length: 0')])).toMatchObject({ body: '', isWhole: true });
  });

  it('has a body in chunks, whose extensions and trailers are ignored', () => {
    const chunks = '5;a="b"\r\nhello\r\n6 \r\n world\r\n0\r\nx: y\r\n\r\nrest';
    expect(parse([`${head('transfer-encoding: gzip, Chunked')}${chunks}`])).toMatchObject({
      ...{ body: 'hello world', isWhole: true, rest: 'rest' },
    });
  });

  it('ends with the connection if nothing tells its length', () => {
    expect(parse([head(), 'hel', 'lo'])).toMatchObject({ body: 'hello', isWhole: false });
    expect(parse([head(), 'hel', 'lo'], true)).toMatchObject({ body: 'hello', isWhole: true });
    expect(parse([`${head('content-length: 9')}hello`], true)).toMatchObject({ isWhole: false });
    expect(parse([head('transfer-encoding: chunked'), '5\r\nhel'], true).isWhole).toBe(false);
  });

  it.each([204, 304])('with status %d has no body', (status) => {
    const text = `HTTP/1.1 ${status} \r\ncontent-length: 5\r\n\r\n`;
    expect(parse([text])).toMatchObject({ status, body: '', isWhole: true });
  });

  it('follows interim ones', () => {
    const text = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102\r\nx: y\r\n\r\n${head('content-length: 2')}ok`;
    expect(parse([text])).toMatchObject({ interim: [100, 102], status: 200, body: 'ok' });
    expect(parse([...text])).toMatchObject({ interim: [100, 102], status: 200, body: 'ok' });
  });

  it('is the same in whichever pieces it arrives', () => {
    const bodies = fc.string({ maxLength: 40 });
    const cuts = fc.array(fc.nat(), { maxLength: 12 });
    const chunked = fc.array(fc.string({ minLength: 1, maxLength: 20 }), { maxLength: 4 });
    const texts = fc.oneof(
      bodies.map((body) => `${head(`content-length: ${body.length}`, 'a: b')}${body}`),
      chunked.map((pieces) => `${head('transfer-encoding: chunked')}${inChunks(pieces)}`),
      chunked.map((pieces) => `HTTP/1.1 103 E\r\n\r\n${head()}${pieces.join('')}`),
    );
    fc.assert(
      fc.property(texts, cuts, (text, at) => {
        expect(parse(cut(text, at), true)).toEqual(parse([text], true));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['other protocols', 'SSH-2.0-OpenSSH\r\n'],
    ['another version', 'HTTP/2.0 200 OK\r\n\r\n'],
    ['a status that is not a number', 'HTTP/1.1 abc\r\n\r\n'],
    ['folded fields', head('a: b', ' c')],
    ['a blank before a colon', head('a : b')],
    ['a bare line feed', head('a: b\nc: d')],
    ['a zero byte', head('a: \0')],
    ['a negative length', head('content-length: -1')],
    ['two lengths', head('content-length: 1', 'content-length: 2')],
    ['a length beside chunks', head('content-length: 1', 'transfer-encoding: chunked')],
    ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['another protocol after the head', 'HTTP/1.1 101 Switching\r\n\r\n'],
    ['a chunk without a size', `${head('transfer-encoding: chunked')}\r\n`],
    ['a size that is too long', `${head('transfer-encoding: chunked')}${'1'.repeat(14)}\r\n`],
    ['a size that is not a number', `${head('transfer-encoding: chunked')}5x\r\n`],
    ['a chunk that is too long', `${head('transfer-encoding: chunked')}2\r\nabc\r\n`],
    ['endless extensions', `${head('transfer-encoding: chunked')}1;${'x'.repeat(65_537)}`],
    ['endless trailers', `${head('transfer-encoding: chunked')}0\r\n${'x: y\r\n'.repeat(11_000)}`],
    ['an endless head', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(11_000)}`],
  ])('is refused with %s', (_, text) => {
    expect(() => parse([text])).toThrow(MalformedResponse);
    expect(() => parse([...text.slice(0, 500), text.slice(500)])).toThrow(MalformedResponse);
  });

  it('never makes the parser fail in another way', () => {
    const pieces = fc.array(
      fc.oneof(
        fc.constantFrom(
          'HTTP/1.1 200 OK',
          '\r\n',
          'content-length: 3',
          'transfer-encoding: chunked',
        ),
        fc.constantFrom(
          '\r\n\r\n',
          '3\r\nabc\r\n',
          '0\r\n\r\n',
          ':',
          '\0',
          'HTTP/1.1 100 \r\n\r\n',
        ),
        fc.string({ maxLength: 6 }),
      ),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(pieces, (given) => {
        try {
          parse(given);
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedResponse);
        }
      }),
      { numRuns: 5_000 },
    );
  });
});

function inChunks(pieces: readonly string[]): string {
  const chunks = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
  return `${chunks.join('')}0\r\n\r\n`;
}

function cut(text: string, places: readonly number[]): string[] {
  const at = [0, ...places.map((place) => place % (text.length + 1)), text.length];
  at.sort((a, b) => a - b);
  return at.slice(1).map((end, i) => text.slice(at[i], end));
}
