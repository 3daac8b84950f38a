import { scan } from './scan';

/** How lines of audio endpoints name their recordings. */

const ENDPOINT = '/v1/audio/transcriptions';

function scanBody(body: object, endpoint = ENDPOINT) {
  const line = { custom_id: 'a', method: 'POST', url: endpoint, body: { model: 'w', ...body } };
  return scan(JSON.stringify(line), { endpoint });
}

function faultsOf(body: object): [code: string, param: string | null][] {
  return scanBody(body).errors.map(({ code, param }) => [code, param]);
}

it('finds the uploaded file that a request names', () => {
  const { found, errors } = scanBody({ file_id: 'file-1', language: 'en' });
  expect(errors).toEqual([]);
  expect(found).toMatchObject([{ model: 'w', fileId: 'file-1' }]);
});

it.each(['UklGRg==', 'data:audio/wav;base64,UklGRg=='])('accepts a recording as %s', (data) => {
  const { found, errors } = scanBody({ file_data: data, filename: 'a.wav', file_id: null });
  expect([errors, found.map(({ fileId }) => fileId)]).toEqual([[], [null]]);
});

it('looks for no file at other endpoints', () => {
  const { found } = scanBody({ file_id: 'file-1', input: 'x' }, '/v1/embeddings');
  expect(found).toMatchObject([{ fileId: null }]);
});

it.each([
  [{}, 'missing_required_parameter', 'body.file_id'],
  [{ file_id: null }, 'missing_required_parameter', 'body.file_id'],
  [{ file_id: 'f', file_data: 'UklG', filename: 'a' }, 'invalid_request', 'body.file_id'],
  [{ file_id: '' }, 'invalid_request', 'body.file_id'],
  [{ file_id: 7 }, 'invalid_request', 'body.file_id'],
  [{ file_id: 'f'.repeat(65) }, 'invalid_request', 'body.file_id'],
  [{ file_data: 'not base64', filename: 'a' }, 'invalid_request', 'body.file_data'],
  [{ file_data: '', filename: 'a' }, 'invalid_request', 'body.file_data'],
  [{ file_data: 'UklG' }, 'missing_required_parameter', 'body.filename'],
  [{ file: 'https://a.test/b.wav' }, 'invalid_request', 'body.file'],
  [{ file_id: 'f', url: 'https://a.test/b.wav' }, 'invalid_request', 'body.url'],
  [{ file_id: 'f', stream: true }, 'streaming_unsupported', 'body.stream'],
  [{ file_id: 'f', stream_format: 'sse' }, 'streaming_unsupported', 'body.stream_format'],
])('refuses a file with a line that has %j', (body, code, param) => {
  expect(faultsOf(body)).toEqual([[code, param]]);
});
