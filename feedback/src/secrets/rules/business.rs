//! Credentials of payments, shops, mail, messages and content.

use super::{Rule, rule};

pub(super) const RULES: &[Rule] = &[
    // These have no part that every one of them holds. They share one form, because each form
    // without a keyword is a walk through every text.
    rule(
        "token of Discord, Twilio, Facebook, Airtable or Asana",
        &[],
        concat!(
            r"\b(?:[MNO][A-Za-z\d_-]{22,27}\.[\w-]{6}\.[\w-]{27,}|(?:SK|AC)[0-9a-f]{32}\b|",
            r"\d{15,16}\|[\w-]{27,40}\b|pat[A-Za-z0-9]{14}\.[a-f0-9]{50,}|",
            r"[12]/\d{15,17}(?:/\d{15,17})?:[a-f0-9]{32}\b)"
        ),
    )
    .min_entropy(3.0),
    rule(
        "Stripe key",
        &["_live_", "_test_", "_prod_"],
        r"\b[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}",
    ),
    rule("webhook secret", &["whsec_"], r"\bwhsec_[A-Za-z0-9+/=]{20,}"),
    rule("Square token", &["sq0", "eaaa"], r"\b(?:sq0[a-z]{3}-|EAAA)[\w-]{22,}").min_entropy(3.0),
    rule("Facebook token", &["eaa"], r"\bEAA[A-Z][A-Za-z0-9]{80,}").min_entropy(3.5),
    rule("Instagram token", &["igq"], r"\bIGQ[A-Z][\w-]{80,}").min_entropy(3.5),
    rule(
        "PayPal token",
        &["access_token$"],
        r"\baccess_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}",
    ),
    rule(
        "Plaid token",
        &["access-"],
        r"\baccess-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    ),
    rule("Razorpay key", &["rzp_"], r"\brzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    rule(
        "Flutterwave key",
        &["flwseck", "flwpubk"],
        r"\bFLW(?:SECK|PUBK)(?:_TEST)?-[a-hA-H0-9]{12,}",
    ),
    rule("Mercado Pago token", &["app_usr-"], r"\bAPP_USR-\d{10,}-\d{6}-[a-f0-9]{32}-\d+"),
    rule("Adyen key", &["aqe"], r"\bAQE[a-z]hmf[A-Za-z0-9+/=-]{60,}"),
    rule("Lob key", &["live_", "test_"], r"\b(?:live|test)_(?:pub_)?[a-f0-9]{31,35}\b"),
    rule("GoCardless token", &["live_"], r"\blive_[\w=-]{40}(?:\W|\z)").min_entropy(4.0),
    rule(
        "Shopify token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        r"\bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{20,}",
    ),
    rule("EasyPost key", &["ezak", "eztk"], r"\bEZ[AT]K[A-Za-z0-9]{50,}"),
    rule("Shippo key", &["shippo_"], r"\bshippo_(?:live|test)_[a-fA-F0-9]{40}"),
    rule("Duffel token", &["duffel_"], r"\bduffel_(?:test|live)_[\w=-]{40,}"),
    rule("Freemius key", &["secret_key"], r#"["']secret_key["']\s*=>\s*["']sk_\S{29}["']"#),
    rule(
        "Slack token",
        &["xoxa-", "xoxb-", "xoxe", "xoxo-", "xoxp-", "xoxr-", "xoxs-"],
        r"\bxox[abeoprs][.-](?:xox[bp]-)?[A-Za-z0-9-]{10,}",
    ),
    rule("Slack token", &["xapp-"], r"(?i)\bxapp-\d-[A-Za-z0-9-]{10,}"),
    rule(
        "Slack webhook",
        &["hooks.slack.com"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/+]{20,}",
    )
    .min_entropy(3.0),
    rule(
        "Discord webhook",
        &["/api/webhooks/"],
        r"discord(?:app)?\.com/api/webhooks/\d{15,}/[\w-]{30,}",
    ),
    rule(
        "Teams webhook",
        &["webhook.office.com"],
        concat!(
            r"\.webhook\.office\.com/webhookb2/[a-z0-9-]{36}@[a-z0-9-]{36}",
            r"/IncomingWebhook/[a-z0-9]{32}"
        ),
    ),
    rule(
        "Zapier webhook",
        &["hooks.zapier.com"],
        r"hooks\.zapier\.com/hooks/catch/\d+/[a-z0-9]{5,}",
    ),
    rule("Telegram token", &[":aa"], r"\b\d{8,10}:AA[\w-]{32,}"),
    rule("SendGrid key", &["sg."], r"\bSG\.[\w-]{16,}\.[\w-]{16,}").min_entropy(3.0),
    rule(
        "Brevo key",
        &["xkeysib-", "xsmtpsib-"],
        r"\bx(?:key|smtp)sib-[a-f0-9]{60,}-[A-Za-z0-9]{12,}",
    ),
    rule("Mailgun key", &["key-"], r"\b(?:pub)?key-[0-9a-f]{32}\b"),
    rule(
        "Mailgun key",
        &["mailgun"],
        r"(?i)mailgun[^\n]{0,60}?\b[a-h0-9]{32}-[a-h0-9]{8}-[a-h0-9]{8}\b",
    ),
    rule("Mailchimp key", &["-us"], r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    rule("Mandrill key", &["md-"], r"\bmd-[A-Za-z0-9_-]{22}\b").min_entropy(3.8),
    rule("Twitter token", &["aaaaaaaaaaaa"], r"\bA{22}[A-Za-z0-9%]{60,}"),
    rule(
        "Notion token",
        &["ntn_", "secret_"],
        r"\b(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}\b)",
    ),
    rule("Airtable key", &["airtable"], r"(?i)\bairtable[^\n]{0,40}?\bkey[a-z0-9]{14}\b")
        .min_entropy(3.5),
    rule("ClickUp token", &["pk_"], r"\bpk_\d{6,10}_[A-Z0-9]{32}\b"),
    rule(
        "HubSpot token",
        &["pat-"],
        r"\bpat-[a-z]{2}\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    ),
    rule("Contentful token", &["cfpat-"], r"\bCFPAT-[\w-]{40,}"),
    rule("Typeform token", &["tfp_"], r"\btfp_[\w.=-]{50,}"),
    rule("Dropbox token", &["sl."], r"\bsl\.[\w=-]{100,}").min_entropy(3.5),
    rule(
        "Sidekiq login",
        &["contribsys"],
        r"(?i)\b[a-f0-9]{8}:[a-f0-9]{8}@(?:gems|enterprise)\.contribsys\.com",
    ),
];
