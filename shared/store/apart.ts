/**
 * One bad member of a list must not hold up the others. Every statement that takes a list is sent
 * through `sendApart`: if the statement fails for another reason than an unavailable database, each
 * member is sent alone, and only the bad one is refused.
 */

import { isLockTimeout, isUnavailable } from "./database.ts";

/** The statement of a list, and the end of members that it does not take. */
interface Apart<Member> {
  /**
   * Sends members in one statement. Throws the driver's error.
   * @param is_alone true: the members of a list that has failed are sent one by one
   */
  send(members: readonly Member[], is_alone: boolean): Promise<unknown>;
  /**
   * Called with the members that the database has not taken. If `isUnavailable(error)`, all of them
   * can be sent again. Otherwise the list has one member, which would fail again.
   */
  refuse(members: readonly Member[], error: unknown, is_alone: boolean): void;
  /**
   * True: the members are sent one after another, in their order. False: at the same time, and the
   * promise does not wait for them, because a member alone may wait for a lock for seconds.
   */
  in_order: boolean;
}

/** Sends a list together, or else its members one by one. Never rejects. */
export async function sendApart<Member>(
  list: readonly Member[],
  { send, refuse, in_order }: Apart<Member>,
): Promise<void> {
  try {
    await send(list, false);
    return;
  } catch (error) {
    // A lock can last for seconds, and one member alone can be the cause of a failure.
    const goes_alone = isLockTimeout(error) || (list.length > 1 && !isUnavailable(error));
    if (!goes_alone) return refuse(list, error, false);
  }
  for (const member of list) {
    const sent = send([member], true).then(
      () => {},
      (error) => refuse([member], error, true),
    );
    if (in_order) await sent;
  }
}

/** Something that the database refuses or cannot read, so that it is left out. For the log. */
export class GivenUp extends Error {
  override readonly name = "GivenUp";
  /** The SQLSTATE. */
  readonly code: string | undefined;

  /** @param subject a kind and an id, such as `delivery whd_…`; the log shows it */
  constructor(readonly subject: string, cause: unknown) {
    super(`Gave up ${subject}`, { cause });
    const { code } = cause as { code?: unknown };
    this.code = typeof code === "string" ? code : undefined;
  }
}
