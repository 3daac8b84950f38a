import type { ClientDuplexStream, ClientReadableStream, StatusObject } from '@grpc/grpc-js';

/** A call that brings messages. */
type Incoming = ClientReadableStream<unknown> | ClientDuplexStream<unknown, unknown>;

/**
 * Settles when a call has its status and all its messages were read, in either order. It never rejects: the error of a
 * call says the same as its status.
 */
export function endOf(call: Incoming): Promise<StatusObject> {
  const status = new Promise<StatusObject>((resolve) => call.once('status', resolve));
  const isRead = new Promise<void>((resolve) => call.once('end', () => resolve()));
  // Without a listener, the error would end the process.
  call.on('error', () => undefined);
  return Promise.all([status, isRead]).then(([end]) => end);
}
