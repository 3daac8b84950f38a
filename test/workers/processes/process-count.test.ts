import { processCount } from '../../../workers/processes/process-count';

const GIB = 1024 ** 3;

it.each([
  ['leaves a core to others', { cores: 4, memoryBytes: 64 * GIB, isOurs: false }, 3],
  ['is one on a single core', { cores: 1, memoryBytes: 64 * GIB, isOurs: false }, 1],
  ['uses a quarter of the memory of a host', { cores: 16, memoryBytes: 8 * GIB, isOurs: false }, 5],
  ['uses most of that of a container', { cores: 16, memoryBytes: 2 * GIB, isOurs: true }, 4],
  ['is one in a small container', { cores: 16, memoryBytes: GIB / 4, isOurs: true }, 1],
])('auto %s', (_name, machine, count) => {
  expect(processCount('auto', machine)).toBe(count);
});

it('is what the settings say', () => {
  expect(processCount(7, { cores: 1, memoryBytes: GIB, isOurs: true })).toBe(7);
});
