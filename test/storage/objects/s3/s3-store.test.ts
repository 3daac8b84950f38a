import { openS3Store } from '../../../../storage/objects/s3/s3-store';
import { describeWithGoTool } from '../../../support/go-tool';
import { openTestBucket, S3_START_MS, type TestBucket } from '../../../support/s3';
import { describeObjectStore } from '../object-store-conformance';

let bucket: TestBucket;

describeWithGoTool('versitygw', 'the S3 store', () => {
  beforeAll(async () => {
    bucket = await openTestBucket();
  }, S3_START_MS);

  describe('as an object store', () => {
    describeObjectStore(() => openS3Store(bucket.options));
  });

  describe('as an object store below a prefix', () => {
    describeObjectStore(() => openS3Store({ ...bucket.options, prefix: 'team/nightshift' }));
  });
});
