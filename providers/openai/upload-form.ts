import type { StreamedBody } from '../../platform/http-client/outbound-body';
import type { JobInput } from '../provider';

/** The form that uploads an input file. */
export interface UploadParts {
  readonly fileName: string;
  /** Beside the file: name and value. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** A line that is in no part. */
  readonly boundary: string;
}

/** The form that uploads an input file: its content type, and its body of known length. */
export function uploadForm(
  { fileName, fields, boundary }: UploadParts,
  input: JobInput,
): { readonly contentType: string; readonly body: StreamedBody } {
  const texts = fields.map(([name, value]) => `${part(boundary, name)}\r\n\r\n${value}\r\n`);
  const file = `${part(boundary, 'file')}; filename="${fileName}"\r\ncontent-type: application/jsonl\r\n\r\n`;
  const head = Buffer.from(texts.join('') + file);
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
