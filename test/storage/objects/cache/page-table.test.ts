import { PageTable } from '../../../../storage/objects/cache/page-table';
import { PAGE_BYTES } from '../../../../storage/objects/cache/pages';
import { FakeDisk } from './fixtures';

it('warns once of a disk that is full, although it fails for many pages at once', async () => {
  const disk = new FakeDisk(100);
  disk.fullFrom = 10;
  const warn = jest.fn();
  const table = new PageTable(disk, { warn });
  const pages = Array.from({ length: 50 }, (_, page) => page);
  await Promise.all(pages.map((page) => table.write('key', page, Buffer.alloc(PAGE_BYTES))));
  expect(pages.filter((page) => table.has('key', page))).toHaveLength(10);
  expect(warn).toHaveBeenCalledTimes(1);
  expect(warn).toHaveBeenCalledWith(
    { err: expect.objectContaining({ code: 'ENOSPC' }) },
    'the cache of the object store cannot be written',
  );
});
