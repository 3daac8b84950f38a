'use strict';

const { batchFile } = require('./lines.js');
const { damaged, json, object, stringify, text } = require('./values.js');

/*
 * What is sent: a request is { kind, method, path, headers, body, isChunked }, or { kind: 'raw', bytes }
 * for a bare socket. `world` knows ids of objects that exist.
 */

const BOUNDARY = 'xxBOUNDARYxx';
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

function part(random, [name, value, filename]) {
  const file = filename === undefined ? '' : `; filename="${filename}"`;
  const type = random.chance(0.3) ? '\r\ncontent-type: application/octet-stream' : '';
  const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${file}${type}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(value), Buffer.from('\r\n')]);
}

function form(random, fields) {
  const odd = random.list(2, () => [
    text(random),
    text(random),
    random.pick([undefined, text(random)]),
  ]);
  const chosen = [...fields.filter(() => random.chance(0.93)), ...(random.chance(0.3) ? odd : [])];
  if (random.chance(0.3)) chosen.reverse();
  const parts = chosen.map((field) => part(random, field));
  const whole = Buffer.concat([...parts, Buffer.from(`--${BOUNDARY}--\r\n`)]);
  return random.chance(0.6) ? whole : damaged(random, whole);
}

function formRequest(random, { kind, path, fields }) {
  const boundary = random.chance(0.97) ? BOUNDARY : text(random).replace(/[^\x20-\x7e]/g, '');
  const type = random.chance(0.97) ? `multipart/form-data; boundary=${boundary}` : 'text/plain';
  const headers = { 'content-type': type };
  if (random.chance(0.1))
    headers['idempotency-key'] = random.pick(['a', 'b', '\t', 'x'.repeat(256)]);
  const body = form(random, fields);
  return { kind, method: 'POST', path, headers, body, isChunked: random.chance(0.4) };
}

function fileForm(random) {
  const purpose = random.pick(['batch', 'user_data', 'user_data', 'assistants', text(random)]);
  const content = random.chance(0.5) ? batchFile(random) : random.bytes(random.between(0, 900));
  const life = random.pick(['3600', '2592000', text(random)]);
  const fields = [
    ['purpose', purpose],
    ['file', content, random.pick(['a.jsonl', 'ü "x".jsonl', '..', text(random)])],
    ...(random.chance(0.2) ? [['expires_after[anchor]', 'created_at']] : []),
    ...(random.chance(0.2) ? [['expires_after[seconds]', life]] : []),
  ];
  return formRequest(random, { kind: 'file', path: '/v1/files', fields });
}

function partForm(random, world) {
  const fields = [['data', random.bytes(random.between(0, 300)), 'part']];
  const path = `/v1/uploads/${world.pick(random, 'upload')}/parts`;
  return formRequest(random, { kind: 'part', path, fields });
}

const BODIES = {
  '/v1/batches': (random, world) => [
    ['input_file_id', mostly(random, world.pick(random, 'file'), text(random))],
    [
      'endpoint',
      mostly(random, '/v1/chat/completions', random.pick(['/v1/responses', text(random)])),
    ],
    ['completion_window', mostly(random, random.pick(['24h', '30d']), text(random))],
    ['metadata', mostly(random, null, random.pick([object(random, ['a'], 0), json(random)]))],
    ['output_expires_after', mostly(random, LIFE, object(random, ['anchor', 'seconds'], 0))],
  ],
  '/v1/uploads': (random) => [
    ['filename', mostly(random, 'a.jsonl', text(random))],
    ['purpose', mostly(random, random.pick(['batch', 'user_data']), text(random))],
    ['bytes', mostly(random, random.pick([1, 100, 1_000, 8 * 1024 ** 3]), json(random, 1))],
    ['mime_type', mostly(random, 'x/y', text(random))],
    ['expires_after', mostly(random, LIFE, object(random, ['anchor', 'seconds'], 0))],
  ],
  complete: (random, world) => [
    ['part_ids', random.list(3, () => mostly(random, world.pick(random, 'part'), json(random, 0)))],
    ['md5', mostly(random, null, random.pick(['a'.repeat(32), text(random)]))],
  ],
};
const LIFE = {
  members: [
    ['anchor', 'created_at'],
    ['seconds', 3600],
  ],
};
const TYPES = ['application/json', 'application/json; charset=utf-8', 'text/plain', 'x/y'];

function mostly(random, good, other) {
  return random.chance(0.9) ? good : other;
}

function jsonRequest(random, world) {
  const name = random.pick(Object.keys(BODIES));
  const path = name === 'complete' ? `/v1/uploads/${world.pick(random, 'upload')}/complete` : name;
  const members = BODIES[name](random, world).map(([member, value]) => [
    member,
    random.chance(0.95) ? value : json(random),
  ]);
  const kept = members.filter(([member]) => random.chance(member.endsWith('_after') ? 0.2 : 0.95));
  if (random.chance(0.1)) kept.push([text(random), json(random)]);
  const whole = Buffer.from(stringify({ members: kept }));
  const body = random.weighted([
    [7, () => whole],
    [2, () => damaged(random, whole)],
    [1, () => Buffer.from(stringify(json(random)))],
    [0.2, () => Buffer.from('['.repeat(random.between(1, 50_000)))],
  ]);
  const type = mostly(random, random.pick(TYPES), text(random).replace(/[^\t\x20-\x7e]/g, ''));
  const headers = { 'content-type': type };
  if (random.chance(0.1)) headers['idempotency-key'] = random.pick(['a', 'b', 'c']);
  return { kind: 'json', method: 'POST', path, headers, body, isChunked: random.chance(0.2) };
}

/** A file that goes through ingestion: the runner uploads it and creates a batch of it. */
function batchRequest(random) {
  const window = random.pick(['24h', '24h', '1h', '1s']);
  return { kind: 'batch', content: batchFile(random), window, cancel: random.chance(0.1) };
}

const ROUTES = [
  ...['files', 'files/{file}', 'files/{file}/content', 'batches', 'batches/{batch}'],
  ...['batches/{batch}/cancel', 'uploads', 'uploads/{upload}/cancel', 'uploads/{upload}/complete'],
];

function lookRequest(random, world) {
  const route = random
    .pick(ROUTES)
    .replace(/\{(\w+)\}/, (_all, kind) =>
      random.chance(0.7) ? world.pick(random, kind) : safely(text(random)),
    );
  const names = ['after', 'limit', 'order', 'purpose', text(random)];
  const query = random.list(3, () => {
    const value = random.pick([
      text(random),
      String(random.between(-1, 200)),
      world.pick(random, 'file'),
    ]);
    return `${safely(random.pick(names))}=${random.chance(0.8) ? safely(value) : '%zz'}`;
  });
  const headers = {};
  if (random.chance(0.4)) {
    const bound = () => random.pick(['', '0', '1', '5', '99999', '-1', '9'.repeat(30)]);
    headers.range = `${random.pick(['bytes', 'BYTES', 'x'])}=${bound()}-${bound()}${random.pick(['', ',1-2'])}`;
  }
  const method = random.pick([
    'GET',
    'GET',
    'GET',
    'HEAD',
    ...METHODS.filter((name) => name !== 'DELETE'),
  ]);
  const hasBody = !['GET', 'HEAD'].includes(method) && random.chance(0.5);
  const body = hasBody ? Buffer.from(stringify(json(random))) : null;
  if (random.chance(0.2)) headers['content-type'] = random.pick(['application/json', 'x', '*/*']);
  return { kind: 'look', method, path: `/v1/${route}?${query.join('&')}`, headers, body };
}

function strangeRequest(random) {
  const path = random.weighted([
    [2, () => `/${safely(text(random))}`],
    [2, () => `/v1/${random.list(4, () => safely(text(random))).join('/')}`],
    [
      1,
      () => random.pick(['//', '/v1//files', '/v1/files/', '/%', '/v1/files/%ff', '/openapi.json']),
    ],
  ]);
  const headers = Object.fromEntries(
    random.list(4, () => [
      random.pick([
        'x-request-id',
        'openai-organization',
        'authorization',
        'if-range',
        'accept',
        'x',
      ]),
      text(random).replace(/[^\t\x20-\x7e\x80-\xff]/g, ''),
    ]),
  );
  return { kind: 'strange', method: random.pick(METHODS), path, headers, body: null };
}

function rawRequest(random, world) {
  const request = random.pick([fileForm, jsonRequest, lookRequest])(random, world);
  const { method, path, headers, body } = request;
  const fields = Object.entries({ host: 'x', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  if (body !== null)
    fields.push(`content-length: ${body.length + random.pick([0, 0, 0, 5, -1])}\r\n`);
  const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${fields.join('')}\r\n`, 'latin1');
  const whole = Buffer.concat([head, body ?? Buffer.alloc(0)]);
  const bytes = random.weighted([
    [1, () => random.bytes(random.between(1, 200))],
    [4, () => damaged(random, whole)],
    [2, () => Buffer.concat([whole, whole])],
    [1, () => Buffer.concat([head.subarray(0, -2), Buffer.alloc(20_000, 'a'), head])],
    [1, () => Buffer.concat([head.subarray(0, -2), hostileFields(random), Buffer.from('\r\n')])],
  ]);
  return { kind: 'raw', bytes, leave: random.pick(['wait', 'end', 'end', 'destroy']) };
}

/** Headers that cost much to read: very many, or full of blanks, or the same one again. */
function hostileFields(random) {
  const blanks = (count) => random.pick([' ', '\t', ' \t']).repeat(count);
  const many = random.between(900, 2_100);
  return Buffer.from(
    random.pick([
      () => Array.from({ length: many }, (_, i) => `f${i}:\r\n`).join(''),
      () => `x: a${blanks(random.between(1_000, 7_500))}b\r\n`,
      () => `authorization: Bearer ${blanks(random.between(1_000, 7_500))}\r\n`,
      () => `content-type: a/b${`;${blanks(3)}`.repeat(random.between(100, 3_000))}\r\n`,
      () => 'host: y\r\nhost: z\r\n',
    ])(),
    'latin1',
  );
}

/** A request that a foreign web page could send; without authentication it must be refused. */
function foreignRequest(random, world) {
  const request = random.pick([fileForm, jsonRequest, lookRequest])(random, world);
  const foreign = random.pick([
    { host: 'rebound.example' },
    { origin: random.pick(['https://evil.example', 'null', 'http://127.0.0.1', 'file://']) },
    { 'sec-fetch-site': random.pick(['cross-site', 'CROSS-SITE']) },
  ]);
  return { ...request, kind: 'foreign', headers: { ...request.headers, ...foreign } };
}

function deletion(random, world) {
  const path = `/v1/files/${world.take(random, 'file')}`;
  return { kind: 'delete', method: 'DELETE', path, headers: {}, body: null };
}

/** Letters that a path may hold; a lone surrogate has no UTF-8. */
function safely(value) {
  return encodeURIComponent(value.toWellFormed?.() ?? Buffer.from(value).toString());
}

/** The request of one index. */
function makeRequest(random, world) {
  return random.weighted([
    [24, () => fileForm(random)],
    [8, () => partForm(random, world)],
    [22, () => jsonRequest(random, world)],
    [4, () => batchRequest(random)],
    [20, () => lookRequest(random, world)],
    [6, () => strangeRequest(random)],
    [8, () => rawRequest(random, world)],
    [3, () => foreignRequest(random, world)],
    [8, () => deletion(random, world)],
  ]);
}

module.exports = { hostileFields, makeRequest, BOUNDARY };
