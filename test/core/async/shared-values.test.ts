import { SharedValues } from '../../../core/async/shared-values';

/** Values that are made once for all who use them at the same time. */

let made: string[];
let values: SharedValues<string>;
beforeEach(() => {
  made = [];
  values = new SharedValues((key) => {
    made.push(key);
    return Promise.resolve(`${key}${made.length}`);
  });
});

it('are made once until their last user has closed them', async () => {
  const users = await Promise.all([values.open('a'), values.open('a'), values.open('b')]);
  expect(users.map(({ value }) => value)).toEqual(['a1', 'a1', 'b2']);
  users[0].close();
  users.push(await values.open('a'));
  expect(made).toEqual(['a', 'b']);
  for (const user of users.slice(1)) user.close();
  expect((await values.open('a')).value).toBe('a3');
});

it('are made again for the next user once they are forgotten', async () => {
  const old = await values.open('a');
  values.forget('a');
  const next = await values.open('a');
  old.close();
  expect([old.value, next.value, (await values.open('a')).value]).toEqual(['a1', 'a2', 'a2']);
});

it('are made again after an error, which all who waited for it get', async () => {
  let failures = 1;
  const failing = new SharedValues(() =>
    failures-- > 0 ? Promise.reject(new Error('away')) : Promise.resolve('here'),
  );
  const first = await Promise.allSettled([failing.open('a'), failing.open('a')]);
  expect(first.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect((await failing.open('a')).value).toBe('here');
});
