import { configSchema } from '../../platform/config-schema';
import { slotsOf } from '../../workers/create-workers';

it.each([
  [['batch', 'exec'], 16 + 7],
  [['batch'], 16],
  [['exec'], 7],
])('counts the slots of a worker with the roles %j as %i', (roles, slots) => {
  const config = configSchema.parse({ worker: { roles, exec_slots: 7 } });
  expect(slotsOf(config)).toBe(slots);
});
