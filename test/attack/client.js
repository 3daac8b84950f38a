'use strict';

const http = require('node:http');
const net = require('node:net');

const PATIENCE_MS = 120_000;

/** A client of one API with its own connections. */
function createClient({ hostname, port, tenantHeader }) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 32 });
  const send = (method, path, { tenant = 'attacker', headers = {}, body } = {}) =>
    new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': String(body.length) };
      const options = {
        ...{ hostname, port, agent, method, path, timeout: PATIENCE_MS },
        headers: { [tenantHeader]: tenant, ...length, ...headers },
      };
      const request = http.request(options, (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode, headers: response.headers, text });
        });
      });
      request.on('timeout', () => request.destroy(new Error(`no answer in ${PATIENCE_MS} ms`)));
      request.on('error', reject);
      request.end(body);
    });
  return {
    send,
    json: async (method, path, { body, ...rest } = {}) => {
      const headers = { 'content-type': 'application/json', ...rest.headers };
      const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
      const answer = await send(method, path, { ...rest, headers, body: bytes });
      return { ...answer, value: parse(answer.text) };
    },
    upload: async (content, { filename = 'a.jsonl', tenant, mime = 'application/jsonl' } = {}) => {
      const answer = await send('POST', '/v1/files', {
        tenant,
        headers: { 'content-type': 'multipart/form-data; boundary=b' },
        body: form(content, filename, mime),
      });
      return { ...answer, value: parse(answer.text) };
    },
    /** A bare connection: errors are part of the attack, what comes back is kept. */
    connect: () => {
      const socket = net.connect(Number(port), hostname);
      socket.received = '';
      socket.on('data', (chunk) => (socket.received = (socket.received + chunk).slice(-4_000)));
      socket.on('error', () => undefined);
      return socket;
    },
    close: () => agent.destroy(),
  };
}

function form(content, filename, mime) {
  const quoted = filename.replaceAll(/["\r\n]/g, '_');
  return Buffer.concat([
    Buffer.from('--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'),
    Buffer.from(
      `--b\r\ncontent-disposition: form-data; name="file"; filename="${quoted}"\r\n` +
        `content-type: ${mime}\r\n\r\n`,
    ),
    content,
    Buffer.from('\r\n--b--\r\n'),
  ]);
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

module.exports = { createClient };
