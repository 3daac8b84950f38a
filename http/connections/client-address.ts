import { isIPv6, type Socket } from 'node:net';

const MAPPED_IPV4 = '::ffff:';

/**
 * The address by which connections are counted. For IPv6 it is the /64 network, the first 64 bits,
 * because one client usually owns all addresses of its network.
 */
export function clientAddress({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): string {
  const isMapped =
    remoteAddress.toLowerCase().startsWith(MAPPED_IPV4) && remoteAddress.includes('.');
  if (isMapped) return remoteAddress.slice(MAPPED_IPV4.length);
  return isIPv6(remoteAddress) ? networkOf(remoteAddress) : remoteAddress;
}

function networkOf(address: string): string {
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const tailGroups = tail === '' ? 0 : tail.split(':').length;
    while (groups.length + tailGroups < 8) groups.push('0');
  }
  return groups.slice(0, 4).join(':');
}
