import type { StreamedBody } from '../../platform/http-client/outbound-body';
import type { JobInput } from '../provider';

/** The provider deletes the file by itself after this time, should we never come back, s. */
const EXPIRES_AFTER_SEC = 14 * 24 * 3600;

/** The form that uploads an input file: its content type, and its body of known length. */
export function uploadForm(
  fileName: string,
  input: JobInput,
  boundary: string,
): { readonly contentType: string; readonly body: StreamedBody } {
  const fields = [
    ['purpose', 'batch'],
    ['expires_after[anchor]', 'created_at'],
    ['expires_after[seconds]', String(EXPIRES_AFTER_SEC)],
  ].map(([name = '', value = '']) => `${part(boundary, name)}\r\n\r\n${value}\r\n`);
  const file = `${part(boundary, 'file')}; filename="${fileName}"\r\ncontent-type: application/jsonl\r\n\r\n`;
  const head = Buffer.from(fields.join('') + file);
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: {
      bytes: head.length + input.bytes + tail.length,
      async *open() {
        yield head;
        yield* input.open();
        yield tail;
      },
    },
  };
}

function part(boundary: string, name: string): string {
  return `--${boundary}\r\ncontent-disposition: form-data; name="${name}"`;
}
