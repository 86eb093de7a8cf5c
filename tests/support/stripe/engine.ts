/**
 * localstripe, the engine behind the double: it decides whether a card is charged, needs
 * authentication or is declined, and whether a capture, a cancel or a refund is allowed. The
 * journal holds the books, and every change is tried on a fresh copy of the payment. So localstripe
 * can lose its memory at any time.
 */

/** Cards for which localstripe has a rule. It charges 4000000000000002. */
const CARDS = {
  approved: "4242424242424242",
  declined: "4000000000000341",
  authenticated: "4000002500003155",
  authenticated_then_declined: "4000008260003178",
} as const;
/** The card with which localstripe refuses to save it; it saves the declined one. */
const UNSAVED = "4000000000000002";
const DEADLINE_MS = 10_000;

/** A payment as localstripe sees it. */
export interface EnginePayment {
  amount: number;
  currency: string;
  manual: boolean;
  card: keyof typeof CARDS;
}

/** A change of a payment, after its confirmation. */
interface EngineChange {
  verb: "authenticate" | "capture" | "cancel" | "refund";
  amount?: number;
  /** The result of the payer's authentication, if it comes before or with the change. */
  authenticated?: boolean;
}

/** A verdict of localstripe. `status` is 402 when the card is declined. */
interface Verdict {
  status: number;
  body: { id: string; status: string; client_secret: string };
}

/** localstripe did not respond. */
export class EngineAway extends Error {}

/** A client of the few endpoints of localstripe that work as Stripe's. */
export class Engine {
  #last: Promise<unknown> = Promise.resolve();

  constructor(readonly base_url: string) {}

  /**
   * Opens and confirms a payment, and changes it. The next call waits, because localstripe keeps
   * only its newest objects.
   */
  judge(payment: EnginePayment, change?: EngineChange): Promise<Verdict> {
    const verdict = this.#last.then(() => this.#judge(payment, change));
    this.#last = verdict.catch(() => {});
    return verdict;
  }

  /** Saves a card without a charge. `authenticated`: the payer has authenticated then. */
  judgeSetup(card: EnginePayment["card"], authenticated = false): Promise<Verdict> {
    const verdict = this.#last.then(async () => {
      const payment_method = await this.#card(card === "declined" ? UNSAVED : CARDS[card]);
      const setup = await this.#post("setup_intents", { usage: "off_session" });
      const path = `setup_intents/${setup.body.id}/confirm`;
      const confirmed = await this.#post(path, { payment_method });
      return authenticated && confirmed.status === 200 ? await this.#post(path, {}) : confirmed;
    });
    this.#last = verdict.catch(() => {});
    return verdict;
  }

  async #card(number: string): Promise<string> {
    const { body } = await this.#post("payment_methods", {
      type: "card",
      "card[number]": number,
      "card[cvc]": "123",
      "card[exp_month]": "12",
      "card[exp_year]": "2034",
    });
    return body.id;
  }

  async #judge(payment: EnginePayment, change?: EngineChange): Promise<Verdict> {
    const payment_method = await this.#card(CARDS[payment.card]);
    const opened = await this.#post("payment_intents", {
      amount: String(payment.amount),
      currency: payment.currency,
      payment_method,
      capture_method: payment.manual ? "manual" : "automatic",
      confirm: "true",
    });
    if (opened.status !== 200 && opened.status !== 402) {
      throw new Error(`localstripe returns ${opened.status} for a payment`);
    }
    return change && opened.status === 200 ? await this.#change(opened.body, change) : opened;
  }

  async #change(
    { id, status, client_secret }: Verdict["body"],
    { verb, amount, authenticated }: EngineChange,
  ): Promise<Verdict> {
    const path = `payment_intents/${id}`;
    if (status === "requires_action" && authenticated !== undefined) {
      const form = { client_secret, success: String(authenticated) };
      const verdict = await this.#post(`${path}/_authenticate`, form);
      if (verb === "authenticate" || verdict.status !== 200) return verdict;
    }
    const [resource, form] = {
      authenticate: [path, {}],
      capture: [`${path}/capture`, { amount_to_capture: String(amount) }],
      cancel: [`${path}/cancel`, {}],
      refund: ["refunds", { payment_intent: id, amount: String(amount) }],
    }[verb] as [string, Record<string, string>];
    return await this.#post(resource, form);
  }

  async #post(path: string, form: Record<string, string>): Promise<Verdict> {
    const options = {
      method: "POST",
      headers: { authorization: "Bearer sk_test_double" },
      body: new URLSearchParams(form),
      signal: AbortSignal.timeout(DEADLINE_MS),
    };
    try {
      const response = await fetch(`${this.base_url}/v1/${path}`, options);
      return { status: response.status, body: await response.json() };
    } catch (error) {
      throw new EngineAway(String(error));
    }
  }
}
