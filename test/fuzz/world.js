'use strict';

const MOST = 300;

/** Ids of objects that the API has made during the run, the oldest forgotten first. */
function createWorld() {
  const ids = { file: [], upload: [], part: [], batch: [] };
  const forgotten = [];
  return {
    /** All batches that were created, for the look at their ends. */
    batches: new Set(),
    /** Files that nobody will ask for any more: to be deleted, so that the run does not fill the disk. */
    forgotten,
    add(kind, id) {
      ids[kind].push(id);
      if (kind === 'batch') this.batches.add(id);
      if (ids[kind].length <= MOST) return;
      const oldest = ids[kind].shift();
      if (kind === 'file') forgotten.push(oldest);
    },
    pick: (random, kind) => (ids[kind].length === 0 ? `${kind}-none` : random.pick(ids[kind])),
    take(random, kind) {
      if (ids[kind].length === 0) return `${kind}-none`;
      return ids[kind].splice(random.between(0, ids[kind].length - 1), 1)[0];
    },
  };
}

module.exports = { createWorld };
