import fs from 'node:fs';
import path from 'node:path';
import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';

const ROOT = path.resolve(__dirname, '../../proto');
const PACKAGE = 'nightshift.audio.v1.';

/** Messages whose type in `audio-messages.ts` has another name than theirs, or is a union without members. */
const EMPTY = ['HealthRequest'];

it('the types of messages have the fields of the contract, and no others', () => {
  const definition = loadSync(path.join(ROOT, 'nightshift/audio/v1/audio.proto'), { oneofs: true });
  const source = fs.readFileSync(path.join(ROOT, 'audio-messages.ts'), 'utf8');
  const inProto = Object.entries(definition).flatMap(([name, found]) => {
    const message = found as Partial<MessageTypeDefinition<object, object>>;
    const { field } = (message.type ?? {}) as { field?: { name: string }[] };
    if (field === undefined || EMPTY.includes(name.slice(PACKAGE.length))) return [];
    return [[name.slice(PACKAGE.length), field.map((one) => one.name).sort()] as const];
  });
  const inTypes = inProto.map(([name]) => [name, membersOf(source, `Wire${name}`)] as const);
  expect(inTypes).toEqual(inProto);
  expect(inProto.length).toBeGreaterThan(15);
});

/** The members of an interface or a union of objects, without those that `oneofs` adds. */
function membersOf(source: string, type: string): string[] {
  const begin = new RegExp(`export (?:interface ${type} |type ${type} =)`).exec(source);
  if (begin === null) return [`${type} is missing`];
  const rest = source.slice(begin.index);
  const end = rest.indexOf('\n\n');
  const text = end === -1 ? rest : rest.slice(0, end);
  const names = [...text.matchAll(/readonly (\w+)\??: ([^;}]*)/g)].filter(
    ([, , kind = '']) => !/^'\w+'( \||$)/.test(kind),
  );
  return names.map(([, name = '']) => name).sort();
}
