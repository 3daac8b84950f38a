import fc from 'fast-check';
import { formBoundary, formEntries, readEntry } from '../../../http/multipart/form-entries';
import { BOUNDARY, formBytes, type TestPart } from '../../support/api';

async function* inPieces(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  let from = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    const to = Math.min(cut, bytes.length);
    yield bytes.subarray(from, to);
    from = to;
  }
  yield bytes.subarray(from);
}

async function read(source: AsyncIterable<Buffer>): Promise<TestPart[]> {
  const parts: TestPart[] = [];
  for await (const part of formEntries(source, BOUNDARY)) {
    const value = await readEntry(part, 1_000_000);
    const { name, filename } = part;
    parts.push({ name, value, ...(filename === null ? {} : { filename }) });
  }
  return parts;
}

const content = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  // Repeated beginnings of a boundary.
  fc
    .array(
      fc.constantFrom(
        ...['\r', '\n', '\r\n', '-', '--', 'x', ' '],
        ...[`\r\n--${BOUNDARY.slice(0, -1)}`, `\r\n--${BOUNDARY}X`, `\r\n--${BOUNDARY}-`],
      ),
      { maxLength: 40 },
    )
    .map((pieces) => Buffer.from(pieces.join(''))),
);
const name = fc.constantFrom('file', 'purpose', 'expires_after[seconds]', 'ünï');
const part = fc.record(
  { name, value: content, filename: fc.constantFrom('a.jsonl', '日本.jsonl') },
  { requiredKeys: ['name', 'value'] },
);

/** A boundary on a line of its own. */
const DELIMITER = new RegExp(`\\r\\n--${BOUNDARY}(--)?[ \\t]*\\r\\n`);

it('reads what was written, however the network splits it', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(part, { maxLength: 5 }),
      fc.array(fc.nat(1_000), { maxLength: 30 }),
      async (parts, cuts) => {
        const bytes = formBytes(parts);
        fc.pre(parts.every(({ value }) => !DELIMITER.test(`${value.toString('latin1')}\r\n`)));
        expect(await read(inPieces(bytes, cuts))).toEqual(parts);
      },
    ),
    { numRuns: 300, seed: 7 },
  );
});

it('never accepts a form that was cut', async () => {
  const bytes = formBytes([
    { name: 'file', value: 'abc\r\n', filename: 'a' },
    { name: 'purpose', value: 'batch' },
  ]);
  for (let length = 0; length < bytes.length - 2; length++) {
    await expect(read(inPieces(bytes.subarray(0, length), [5, 40]))).rejects.toMatchObject({
      code: 'invalid_request',
      httpStatus: 400,
    });
  }
  await expect(read(inPieces(bytes.subarray(0, -2), []))).resolves.toHaveLength(2);
});

it('treats a line that only begins with the boundary as content', async () => {
  const value = Buffer.from(
    [`--${BOUNDARY}X`, `--${BOUNDARY}-`, `--${BOUNDARY}--X`, `--${BOUNDARY} x`, ''].join('\r\n'),
  );
  const parts = [{ name: 'file', value, filename: 'a' }];
  const bytes = formBytes(parts);
  for (let cut = 0; cut < bytes.length; cut++) {
    expect(await read(inPieces(bytes, [cut]))).toEqual(parts);
  }
});

it('accepts blanks between a boundary and the end of its line', async () => {
  const text = formBytes([{ name: 'a', value: 'b' }]).toString();
  const padded = text.replaceAll(/(BOUNDARYxx(?:--)?)\r\n/g, '$1 \t\r\n');
  expect(padded).not.toBe(text);
  expect(await read(inPieces(Buffer.from(padded), [5]))).toHaveLength(1);
  const long = text.replace('xx\r\n', `xx${' '.repeat(300)}\r\n`);
  await expect(read(inPieces(Buffer.from(long), []))).rejects.toThrow('too long');
});

it('skips the bytes before the first boundary, and entries that are not read', async () => {
  const bytes = Buffer.concat([
    Buffer.from('preamble\r\n'),
    formBytes([
      { name: 'a', value: 'x'.repeat(1000) },
      { name: 'b', value: 'y' },
    ]),
    Buffer.from('epilogue'),
  ]);
  const names: string[] = [];
  for await (const { name } of formEntries(inPieces(bytes, [100, 200]), BOUNDARY)) names.push(name);
  expect(names).toEqual(['a', 'b']);
});

it.each([
  ['a part without a name', `--${BOUNDARY}\r\ncontent-type: a\r\n\r\n\r\n--${BOUNDARY}--`],
  ['a header that never ends', `--${BOUNDARY}\r\n${'x'.repeat(40_000)}\r\n\r\n`],
  ['a form without boundaries', 'hello'],
])('refuses %s', async (_name, text) => {
  await expect(read(inPieces(Buffer.from(text), [64]))).rejects.toMatchObject({
    code: 'invalid_request',
  });
});

it.each(['base64', 'quoted-printable', 'x-own'])('refuses a part sent as %s', async (encoding) => {
  const text = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="a"\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\nYQ==\r\n--${BOUNDARY}--`;
  await expect(read(inPieces(Buffer.from(text), []))).rejects.toThrow(encoding);
  const plain = text.replace(encoding, 'Binary');
  expect(await read(inPieces(Buffer.from(plain), []))).toHaveLength(1);
});

it('refuses a form of more than 100 entries, and a field that is too long', async () => {
  const many = Array.from({ length: 101 }, (_, i) => ({ name: `n${i}`, value: '' }));
  await expect(read(inPieces(formBytes(many), []))).rejects.toThrow('more than 100 parts');
  const long = formBytes([{ name: 'purpose', value: 'x'.repeat(1_000_001) }]);
  await expect(read(inPieces(long, []))).rejects.toThrow('too long');
});

it.each([
  ['name="a"; filename="x.jsonl"', 'x.jsonl'],
  ['name="a"; filename=x.jsonl', 'x.jsonl'],
  ['name="a"; filename="say %22hi%22.jsonl"', 'say "hi".jsonl'],
  ['name="a"; filename="say \\"hi\\".jsonl"', 'say "hi".jsonl'],
  ['filename="größe.jsonl"; name="a"', 'größe.jsonl'],
  [`name="a"; filename="_.jsonl"; filename*=UTF-8''gr%C3%B6%C3%9Fe.jsonl`, 'größe.jsonl'],
  ['name="a"; filename=""', ''],
  ['name="a"', null],
  ['name="filename=x"', null],
  ['filename="say; name=\\"b\\".jsonl"; name="a"', 'say; name="b".jsonl'],
  ['name="a"; filename="C:\\dir\\"', 'C:\\dir\\'],
  ['name="a";\r\n\tfilename="folded.jsonl"', 'folded.jsonl'],
  ['creation-date; name="a"; filename="x.jsonl"', 'x.jsonl'],
  [`name="a"; filename*=iso-8859-1''gr%F6%DFe.jsonl`, 'größe.jsonl'],
  [`name="a"; filename="x.jsonl"; filename*=UTF-8''%ff`, 'x.jsonl'],
  [`name="a"; filename*=UTF-8''%ff`, ''],
])('reads the header %s', async (disposition, filename) => {
  const text = `--${BOUNDARY}\r\nX-Other: 1\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n\r\n--${BOUNDARY}--`;
  const source = inPieces(Buffer.from(text), []);
  for await (const part of formEntries(source, BOUNDARY)) expect(part.filename).toBe(filename);
});

it.each([
  ['multipart/form-data; boundary=abc', 'abc'],
  ['Multipart/Form-Data; charset=utf-8; boundary="a b;c"', 'a b;c'],
  ['multipart/form-data; boundary=abc; charset=utf-8', 'abc'],
  ['multipart/form-data', null],
  ['multipart/mixed; boundary=abc', null],
  ['application/json', null],
  [undefined, null],
])('finds the boundary of %s', (type, boundary) => {
  expect(formBoundary(type)).toBe(boundary);
});

it('accepts a boundary of 200 characters, and refuses a longer one', () => {
  const type = (length: number) => `multipart/form-data; boundary=${'b'.repeat(length)}`;
  expect(formBoundary(type(200))).toHaveLength(200);
  expect(() => formBoundary(type(201))).toThrow('its boundary has 201 characters');
  expect(() => formBoundary(`multipart/form-data; boundary="${'b'.repeat(300)}"`)).toThrow('300');
});
