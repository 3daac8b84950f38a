'use strict';

/** Forms that ordinary clients do not send, by what is odd about them. */
function oddForms(boundary) {
  const head = (disposition, more = '') =>
    `--${boundary}\r\ncontent-disposition: ${disposition}\r\n${more}\r\n`;
  const field = (name, value) => `${head(`form-data; name="${name}"`)}${value}\r\n`;
  const file = (value) => `${head('form-data; name="file"; filename="a"')}${value}\r\n`;
  const end = `--${boundary}--\r\n`;
  const whole = `${field('purpose', 'batch')}${file('hello')}${end}`;
  const forms = {
    'an ordinary form': whole,
    'its file first': `${file('hello')}${field('purpose', 'batch')}${end}`,
    'a field twice': `${field('purpose', 'batch')}${field('purpose', 'vision')}${end}`,
    'lines that end with LF only': whole.replaceAll('\r\n', '\n'),
    'no closing boundary': whole.slice(0, -end.length),
    'an end within the closing boundary': whole.slice(0, -6),
    'an end within a header': whole.slice(0, 60),
    'nothing at all': '',
    'text instead of a form': 'hello, world, this is not a form at all, is it?',
    'a boundary inside the content': `${file(`x\r\n--${boundary}X\r\ny`)}${end}`,
    'blanks after a boundary': whole.replaceAll(`${boundary}\r\n`, `${boundary} \t\r\n`),
    'a part without a name': `${head('form-data')}x\r\n${end}`,
    'a part without a disposition': `--${boundary}\r\ncontent-type: text/plain\r\n\r\nx\r\n${end}`,
    'a part in base64': `${head('form-data; name="file"; filename="a"', 'content-transfer-encoding: base64\r\n')}aGVsbG8=\r\n${end}`,
    'a header of 100 KB': `${head(`form-data; name="a${' '.repeat(100_000)}"`)}x\r\n${end}`,
    'a field of 70 KB': `${field('purpose', 'x'.repeat(70_000))}${end}`,
    'a file name with a path': `${head('form-data; name="file"; filename="a/b\\\\c.jsonl"')}x\r\n${end}`,
    'a quote as %22 in a file name': `${head('form-data; name="file"; filename="a%22b"')}x\r\n${end}`,
  };
  return Object.entries(forms).map(([what, text]) => [what, Buffer.from(text)]);
}

module.exports = { oddForms };
