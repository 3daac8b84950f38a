import { TokenWindow } from '../../../../core/dispatch/queue/token-window';

it('counts the tokens of the last minute', () => {
  const window = new TokenWindow();
  for (let second = 0; second < 200; second++) window.add(1, second * 1_000);
  // Slots of 5 s: the present one, and the eleven before it.
  expect(window.sum(199_000)).toBe(60);
  expect(window.sum(204_999)).toBe(55);
  expect(window.sum(230_000)).toBe(25);
  expect(window.sum(254_999)).toBe(5);
  expect(window.sum(255_000)).toBe(0);
});

it('forgets everything after a pause of more than a minute', () => {
  const window = new TokenWindow();
  window.add(7, 12_000);
  expect(window.sum(10 ** 9)).toBe(0);
  window.add(3.4, 10 ** 9);
  expect(window.sum(10 ** 9)).toBe(3);
});
