/** The references of an instrument at a live provider of cards. */
export interface InstrumentProvider {
  /** The account of the provider, `pac_…`. */
  account: string;
  customer: string;
  /** The provider's id of the card. Absent: the payment that was to save it was not successful. */
  token?: string;
}
