'use strict';

const OPEN = ['validating', 'in_progress', 'finalizing', 'cancelling'];

/** What is wrong with an answer, in words; null where nothing is. */
function faultOf({ kind, method, path }, { status, headers, body }) {
  if (kind === 'foreign' && status < 400) return `status ${status} for a foreign page`;
  if (status >= 500) return `status ${status}: ${body.toString().slice(0, 300)}`;
  if (headers['x-request-id'] === undefined) return `status ${status} without an x-request-id`;
  if (method === 'HEAD') return body.length === 0 ? null : 'a HEAD with a body';
  if (status >= 400) return errorFault(status, headers, body);
  if (/\/content(\?|$)/.test(path)) return null;
  return parsed(body) === undefined ? `status ${status} with a body that is no JSON` : null;
}

function errorFault(status, headers, body) {
  const error = parsed(body)?.error;
  const keys = Object.keys(error ?? {})
    .sort()
    .join();
  const isJson = /^application\/json/.test(headers['content-type'] ?? '');
  if (isJson && keys === 'code,message,param,type') return null;
  return `status ${status} with the body ${body.toString().slice(0, 200)}`;
}

/** What is wrong with bytes that came back on a bare socket. */
function rawFaultOf(bytes) {
  if (bytes.length === 0) return null;
  const text = bytes.toString('latin1');
  if (!text.startsWith('HTTP/1.1 ')) return `an answer that is no HTTP: ${text.slice(0, 100)}`;
  const found = /(?:^|\n)HTTP\/1\.1 5\d\d [^\r]*/.exec(text);
  return found === null ? null : `${found[0].trim()} on a bare socket`;
}

/** What is wrong with a batch that has ended. */
function batchFaultOf(batch) {
  const { status, request_counts: counts, errors } = batch;
  if (OPEN.includes(status)) return `still ${status}`;
  const codes = (errors?.data ?? []).map(({ code }) => code);
  if (codes.includes('system_error')) return 'ended with a system_error';
  if (status === 'failed' && codes.length === 0) return 'failed without a reason';
  const { total, completed, failed } = counts;
  if (status === 'completed' && completed + failed !== total)
    return `counts ${JSON.stringify(counts)}`;
  return null;
}

function parsed(body) {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

module.exports = { faultOf, rawFaultOf, batchFaultOf, parsed };
