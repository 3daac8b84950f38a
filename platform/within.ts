/**
 * The result of `work`, or that of `late` if `work` takes longer than `ms`. `work` then goes on, and what
 * becomes of it is ignored. @throws what `work` or `late` throws
 */
export async function within<T, L>(ms: number, work: Promise<T>, late: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<typeof TIME_UP>((resolve) => {
    timer = setTimeout(() => resolve(TIME_UP), ms);
  });
  try {
    const first = await Promise.race([work, timeUp]);
    return first === TIME_UP ? late() : first;
  } finally {
    clearTimeout(timer);
  }
}

const TIME_UP = Symbol('time up');
