import { z } from 'zod';

/** A time on the wire. */
export const unixSeconds = z.int().meta({ description: 'Unix seconds' });

/** A number of bytes, tokens or requests. */
export const counter = z.int().min(0);
